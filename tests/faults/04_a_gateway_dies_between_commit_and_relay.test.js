// Faults 4 and 13: a gateway dies after the Archive has committed and before it has told anybody, neither the
// workers nor its client. The sweep relays; the client's retry gets the same answer.

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

judged("i6_a_gateway_dies_between_commit_and_relay", { start: cluster(), decides: ["I4", "I6"] }, async ({ load, fault, home, random }) => {
  for (let i = 0; i < 2; i += 1) {
    const gateway = home.gateways[i % 2];
    await gateway.stop();
    await fault("dies at archive-committed", gateway.name, () => gateway.start({ failpoint: `archive-committed:${random.between(1, 15)}` }));
    await until("it has died", () => gateway.ended, { seen: () => gateway.log() });
    await gateway.start();
  }
  await load.flows(30);
});
