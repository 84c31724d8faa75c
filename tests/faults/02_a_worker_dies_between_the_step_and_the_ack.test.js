// Fault 2: a worker dies after a step has been appended and before its job is acknowledged: right after the step,
// after the bucket, after the event. The job comes again, and changes nothing that is there.

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const POINTS = ["step-answered", "bucket-finished", "event-finished"];

judged("i3_i14_workers_die_between_the_step_and_the_ack", { start: cluster(), decides: ["I3", "I14"] }, async ({ load, fault, home, random }) => {
  for (const [i, point] of POINTS.entries()) {
    const worker = home.workers[i % 2];
    await worker.stop();
    await fault(`dies at ${point}`, worker.name, () => worker.start({ failpoint: `${point}:${random.between(1, 15)}` }));
    await until("it has died", () => worker.ended, { seen: () => worker.log() });
    await worker.start();
  }
  await load.flows(40);
});
