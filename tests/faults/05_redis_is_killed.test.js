// Fault 5: Redis is killed and started again. Sockets stay open. Changes come late, and none is lost.

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

judged("i4_i9_redis_is_killed_under_load", { start: cluster(), decides: ["I4", "I9", "I16"] }, async ({ load, fault, home }) => {
  for (let i = 0; i < 3; i += 1) {
    await load.flows(40);
    await fault("kill", "redis", () => home.redis.kill());
    await home.redis.restart();
  }
  await load.flows(40);
});
