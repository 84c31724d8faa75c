// Fault 3: workers are killed in the middle of a fan-out: by SIGKILL at any moment, and between the decision of a
// step and the step. Others, or the same one again, go on where the progress stands.

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

judged("i4_i14_workers_are_killed_mid_fan_out", { start: cluster(), decides: ["I4", "I14"] }, async ({ load, fault, home, random }) => {
  for (let i = 0; i < 3; i += 1) {
    await load.flows(20);
    const worker = random.pick(home.workers);
    await fault("kill", worker.name, () => worker.kill());
    await fault("dies at step-decided", worker.name, () => worker.start({ failpoint: `step-decided:${random.between(1, 30)}` }));
    await until("it has died", () => worker.ended, { seen: () => worker.log() });
    await worker.start();
  }
  await load.flows(20);
});
