// Fault 14: one gateway still reaches Redis or NATS and gets no answer. It says that it is not ready, and
// that it lives; after it has healed everything converges.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

for (const engine of ["redis", "nats"]) {
  judged(`i4_a_gateway_gets_no_answers_of_${engine}`, { start: cluster({ through: ["gateway-1"] }), decides: ["I4", "I17"] }, async ({ load, fault, home }) => {
    const [gateway] = home.gateways;
    await load.flows(30);
    await fault("stall answers", `gateway-1 and ${engine}`, () => home.proxies["gateway-1"][engine].stall("answers"));
    await until("it is not ready", async () => !(await gateway.isReady()));
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200, "it lives");
    await load.flows(30);
    await fault("heal", `gateway-1 and ${engine}`, () => home.proxies["gateway-1"][engine].heal());
    await until("it is ready again", () => gateway.isReady());
    await load.flows(30);
  });
}
