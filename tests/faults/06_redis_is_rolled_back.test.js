// Fault 6: Redis comes back with what it held some time ago. The epochs are new, every device is reset, and the
// inboxes are rebuilt from the Archive.

import { cp, rm } from "node:fs/promises";
import { join } from "node:path";

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

judged("i9_i16_redis_is_rolled_back_under_load", { start: cluster(), decides: ["I9", "I16"] }, async ({ load, fault, home }) => {
  const names = ["appendonlydir", "appendonlydir.then"];
  const [now, then] = names.map((name) => join(home.redis.directory, name));
  for (let i = 0; i < 2; i += 1) {
    await load.flows(40);
    await home.redis.copy(...names);
    await load.flows(40);
    await fault("roll back", "redis", () => home.redis.kill());
    await rm(now, { recursive: true });
    await cp(then, now, { recursive: true });
    await rm(then, { recursive: true });
    await home.redis.restart();
  }
  await load.flows(40);
});
