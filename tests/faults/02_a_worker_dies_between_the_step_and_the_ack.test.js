// Fault 2: a worker dies after a step has been appended and before its job is acknowledged, again and
// again. The job comes again, and changes nothing that is there.

import { cluster } from "./cluster.js";
import { until } from "../actors/until.js";
import { judged } from "./judged.js";

for (const failpoint of ["step-answered", "bucket-finished", "event-finished"]) {
  judged(`i3_i14_a_worker_dies_at_${failpoint}`, { start: cluster(), decides: ["I3", "I14"] }, async ({ load, fault, home, random }) => {
    for (let i = 0; i < 2; i += 1) {
      const worker = home.workers[i % 2];
      await worker.stop();
      await fault(`dies at ${failpoint}`, worker.name, () => worker.start({ failpoint: `${failpoint}:${random.between(1, 15)}` }));
      await until("it has died", () => worker.ended, { withinSecs: 60, seen: () => worker.log() });
      await worker.start();
    }
    await load.flows(40);
  });
}
