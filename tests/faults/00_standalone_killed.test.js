// The checker and the load against the product that needs no engine: one process, killed under load.

import { Server } from "../actors/server.js";
import { CONFIG } from "./cluster.js";
import { judged } from "./judged.js";

const ALL = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I14", "I15", "I16", "I17", "I18"];

const options = { start: (t) => Server.start(t, { config: CONFIG }), decides: ALL };

judged("i4_i6_i9_the_standalone_server_is_killed_three_times_under_load", options, async ({ load, fault, home }) => {
  for (let i = 0; i < 3; i += 1) {
    await load.flows(60);
    await fault("kill", "feedgate", () => home.kill());
    await home.start();
  }
  await load.flows(60);
});
