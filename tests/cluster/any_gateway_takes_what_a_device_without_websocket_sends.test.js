// Where WebSocket is blocked, a load balancer may send each message of a device to any gateway: the one that holds the
// session gets it over NATS.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";

/** A device on a busy machine may be seconds late with a pong. */
const PONG_WITHIN_SECS = 5;
const config = `[gateway]\nping_interval_secs = 1\npong_within_secs = ${PONG_WITHIN_SECS}\n`;

for (const transport of ["http_stream", "sse"]) {
  test(`a session on one gateway lives by what another takes for it (${transport})`, async (t) => {
    const cluster = await Cluster.start(t, { config });
    const [one, two] = cluster.gateways;
    let sent = 0;
    const emulation = () => {
      sent += 1;
      return one;
    };
    await cluster.follow("ann", "bob");
    const phone = await Phone.open(t, two, "ann", { device: "web-1", transport, emulation });
    await phone.subscribed();
    await cluster.publish("bob", { text: "hello" });
    await phone.shows("the post", (items) => items.length === 1);
    await phone.acknowledge();
    const [{ node }] = (await one.call("GET", "/v1/users/ann/sessions")).sessions;
    assert.equal(node.split(".")[0], "gateway-2");

    const before = sent;
    // Without the first of these it would have ended before the last.
    await phone.waitFor("more pongs", () => sent >= before + PONG_WITHIN_SECS + 3);
    assert.deepEqual([phone.connects, phone.connecting.length], [1, 1], "it never had to connect again");
    await phone.agrees();
  });
}
