// Fault 30: every gateway and worker is stopped with SIGTERM and started again, one after another, under
// load. Devices are closed with 3001 and come back by themselves; nothing is lost.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

judged("i4_i9_a_rolling_restart_under_load", { start: cluster(), decides: ["I4", "I9"] }, async ({ load, fault, home }) => {
  for (const member of [...home.gateways, ...home.workers]) {
    await load.flows(30);
    const told = () => load.phones.reduce((sum, { phones }) => sum + phones[0].connecting.filter((code) => code === 3001).length, 0);
    const before = told();
    const ended = await fault("SIGTERM", member.name, () => member.stop());
    assert.deepEqual(ended, { code: 0, signal: null }, member.log());
    if (home.gateways.includes(member)) {
      await until("a device was told that its gateway goes away", () => told() > before);
    }
    await member.start();
  }
  await load.flows(30);
});
