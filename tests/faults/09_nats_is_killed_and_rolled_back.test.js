// Fault 9: NATS is killed, and comes back with all it had, with what it had some time ago, or with nothing. The
// Archive knows what is outstanding.

import { cp, rm } from "node:fs/promises";
import { join } from "node:path";

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster(), decides: ["I4", "I6"] };

judged("i4_i6_nats_is_killed_under_load", options, async ({ load, fault, home }) => {
  for (let i = 0; i < 3; i += 1) {
    await load.flows(30);
    await fault("kill", "nats", () => home.nats.kill());
    await home.nats.restart();
  }
  await load.flows(30);
});

judged("i4_i6_nats_is_rolled_back_and_wiped_under_load", options, async ({ load, fault, home }) => {
  const names = ["jetstream", "jetstream.then"];
  const [now, then] = names.map((name) => join(home.nats.directory, name));
  await load.flows(30);
  await home.nats.copy(...names);
  await load.flows(30);
  await fault("roll back", "nats", () => home.nats.kill());
  await rm(now, { recursive: true });
  await cp(then, now, { recursive: true });
  await home.nats.restart();
  await load.flows(30);
  await fault("wipe", "nats", () => home.nats.kill());
  await rm(now, { recursive: true });
  await home.nats.restart();
  await load.flows(30);
});
