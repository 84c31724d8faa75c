// Fault 1: a gateway is killed under load. Devices go on at another node; the stale session is fenced.

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

judged("i1_i2_i9_i17_gateways_are_killed_under_load", { start: cluster(), decides: ["I1", "I2", "I9", "I17"] }, async ({ load, fault, home, random }) => {
  for (let i = 0; i < 3; i += 1) {
    await load.flows(40);
    const gateway = random.pick(home.gateways);
    await fault("kill", gateway.name, () => gateway.kill());
    await load.flows(40);
    await gateway.start();
  }
});
