// A cluster under load, one process after another: in between, both versions serve over the same engines. In any order, and
// also when the upgrade is taken back half-way. The whole history is judged: nothing is lost, nothing comes twice.

import assert from "node:assert/strict";

import { BIN } from "../actors/process.js";
import { cluster } from "../faults/cluster.js";
import { judged } from "../faults/judged.js";
import { BEFORE } from "./earlier.js";

const both = { start: cluster({ bin: BEFORE.bin }), decides: ["I4", "I9"] };

/** Stops the processes one after another, and starts each with the programs in `bin`. */
async function change({ load, fault }, members, bin) {
  for (const member of members) {
    await load.flows(30);
    const ended = await fault("SIGTERM", member.name, () => member.stop());
    assert.deepEqual(ended, { code: 0, signal: null }, member.log());
    member.bin = bin;
    await member.start();
  }
}

const ORDERS = {
  gateways_first: ({ gateways, workers }) => [...gateways, ...workers],
  workers_first: ({ gateways, workers }) => [...workers, ...gateways],
};

for (const [name, order] of Object.entries(ORDERS)) {
  judged(`i4_i9_a_cluster_is_upgraded_one_process_after_another_${name}`, both, async (run) => {
    await change(run, order(run.home), BIN);
    await run.load.flows(30);
  });
}

judged("i4_i9_an_upgrade_is_taken_back_half_way", both, async (run) => {
  const half = [run.home.gateways[0], run.home.workers[0]];
  await change(run, half, BIN);
  await change(run, half, BEFORE.bin);
  await run.load.flows(30);
});
