import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { until } from "../actors/until.js";
import { Wire } from "../actors/wire.js";

test("a revocation ends the sessions at every gateway, and no gateway takes the tokens again, after a crash either", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  const tokens = await Promise.all(["phone", "tablet"].map((device) => one.token("ann", { device })));
  const [old] = tokens;
  const sessions = await Promise.all([one, two].map((gateway, i) => Wire.open(t, gateway, { token: tokens[i] })));
  const spared = await Wire.open(t, two, { token: await one.token("bob", { device: "phone" }) });
  const page = async (gateway, token) => (await fetch(`${gateway.url}/v1/users/ann/feed`, { headers: { authorization: `Bearer ${token}` } })).status;
  assert.equal(await page(two, old), 200);

  await one.call("POST", "/v1/users/ann/revoke");
  assert.deepEqual(await Promise.all(sessions.map((session) => session.closed())), [3005, 3005]);
  assert.equal(await page(one, old), 401, "the gateway that has answered knows at once");
  await until("the other gateway refuses the token", async () => (await page(two, old)) === 401);
  assert.deepEqual(await spared.ask("ping"), { id: 2, ping: {} }, "another user is not concerned");

  await Promise.all([one, two].map((gateway) => gateway.kill()));
  await Promise.all([one, two].map((gateway) => gateway.start()));
  const next = await one.token("ann", { device: "new" });
  for (const gateway of [one, two]) {
    assert.deepEqual([await page(gateway, old), await page(gateway, next)], [401, 200], gateway.name);
    const refused = await Wire.open(t, gateway);
    assert.equal((await refused.ask("connect", { token: old })).error.code, 109, gateway.name);
    await Wire.open(t, gateway, { token: next });
  }
});
