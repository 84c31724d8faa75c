// One process under load: the earlier version ends, and the later one goes on. The whole history is judged: nothing is lost,
// nothing comes twice.

import { BIN } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { CONFIG } from "../faults/cluster.js";
import { judged } from "../faults/judged.js";
import { BEFORE } from "./earlier.js";

const ALL = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I14", "I15", "I16", "I17", "I18"];

const server = { start: (t) => Server.start(t, { config: CONFIG, bin: BEFORE.bin }), decides: ALL };

for (const signal of ["SIGTERM", "SIGKILL"]) {
  judged(`i4_i9_a_server_ends_by_${signal}_and_a_later_version_goes_on`, server, async ({ load, fault, home }) => {
    await load.flows(60);
    await fault(signal, "feedgate", () => home.stop(signal));
    home.bin = BIN;
    await home.start();
    await load.flows(60);
  });
}
