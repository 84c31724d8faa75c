// Fault 15: a gateway hangs for longer than its lease, and goes on. Its devices have moved; what it still holds changes
// no stored state and is sent at most one batch.

import { setTimeout as sleep } from "node:timers/promises";

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

/** A lease is 10 s. */
const HANGS_MS = 14_000;

judged("i12_i17_a_gateway_hangs_past_its_lease", { start: cluster(), decides: ["I12", "I17"] }, async ({ load, fault, home, random }) => {
  await load.flows(30);
  const gateway = random.pick(home.gateways);
  await fault("pause", gateway.name, () => gateway.pause());
  await sleep(HANGS_MS);
  await fault("resume", gateway.name, () => gateway.resume());
  await load.flows(60);
});
