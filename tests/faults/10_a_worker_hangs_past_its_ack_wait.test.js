// Faults 10 and 11: a worker hangs for longer than the AckWait, in the middle of its jobs. They go to the other, and
// the one that hung goes on with what it had decided long ago: nothing is appended twice, nothing out of order.

import { setTimeout as sleep } from "node:timers/promises";

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

/** The AckWait of a job is 1.5 s. */
const HANGS_MS = 6_000;

judged("i3_i11_a_worker_hangs_past_its_ack_wait", { start: cluster(), decides: ["I2", "I3", "I11", "I14"] }, async ({ load, fault, home }) => {
  await load.flows(30);
  const [worker] = home.workers;
  await fault("pause", worker.name, () => worker.pause());
  await sleep(HANGS_MS);
  await fault("resume", worker.name, () => worker.resume());
  await load.flows(60);
});
