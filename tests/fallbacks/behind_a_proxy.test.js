// The files of deploy/proxies/, each run by the real nginx, Caddy and HAProxy in front of a server: devices get what they
// would get without it, in all the ways in which they connect, and nothing else of the server can be reached through it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { FRONTS, Front } from "../actors/front.js";
import { Phone } from "../actors/phone.js";
import { WebSocket } from "../actors/sdk.js";
import { until } from "../actors/until.js";
import { missesPosts } from "./away.js";

/** The address of a device that is not the proxy's own. */
const DEVICE = "127.0.0.2";

const NAMES_CLIENTS = `[gateway]\ntrusted_proxies = ["127.0.0.1"]\nclient_address = "x-forwarded-for"\n`;

/** The commands with which a device of `ann` begins. */
async function beginning(front) {
  const commands = [{ id: 1, connect: { token: await front.token("ann") } }, { id: 2, subscribe: { channel: "feed", data: { deliver: "items" } } }];
  return commands.map((command) => JSON.stringify(command));
}

/** The status that an upgrade of the device is answered with. */
function upgraded(t, front, headers = {}) {
  const socket = new WebSocket(front.websocket, { ...front.trusting, localAddress: DEVICE, headers });
  t.after(() => socket.terminate());
  return new Promise((resolve, reject) => {
    socket.on("open", () => resolve(101)).on("unexpected-response", (_, { statusCode }) => resolve(statusCode)).on("error", reject);
  });
}

for (const name of FRONTS) {
  test(`a phone behind ${name} gets posts live, large ones too, and what it missed`, async (t) => {
    const front = await Front.start(t, name);
    await front.follow("ann", "bob");
    const phone = await Phone.open(t, front, "ann", { transport: "websocket" });
    await phone.subscribed();
    await front.publish("bob", { text: "x".repeat(30_000) });
    await phone.shows("the post", (items) => items.length === 1);
    await missesPosts(phone, front);
  });

  test(`${name} passes on what a stream holds as soon as it comes`, async (t) => {
    const front = await Front.start(t, name);
    await front.follow("ann", "bob");
    const json = { "content-type": "application/json" };
    const stream = await front.asked("POST", "/connection/http_stream", { headers: json, body: (await beginning(front)).join("\n") });
    const [connect] = await beginning(front);
    const events = await front.asked("GET", `/connection/sse?cf_connect=${encodeURIComponent(connect)}`);
    const only = await front.asked("GET", `/connection/uni_sse?cf_connect=${encodeURIComponent(JSON.stringify({ token: await front.token("ann") }))}`);
    for (const answer of [stream, events, only]) assert.equal(answer.statusCode, 200, answer.text);
    await until("the stream is subscribed", () => stream.text.includes('"id":2'), { seen: () => stream.text });
    await until("the events begin", () => events.text.includes('"session"'), { seen: () => events.text });

    // The device's second message takes another way than its first: a request to /emulation.
    const { session, node } = JSON.parse(/^data: ?(.*)$/m.exec(events.text)[1]).connect;
    const second = { session, node, data: (await beginning(front))[1] };
    const taken = await front.asked("POST", "/emulation", { headers: json, body: JSON.stringify(second) });
    assert.equal(taken.statusCode, 204, taken.text);
    await until("the events are subscribed", () => events.text.includes('"id":2'), { seen: () => events.text });
    await front.publish("bob", { text: "hello" });
    for (const answer of [stream, events, only]) await until("the post", () => answer.text.includes('"hello"'), { seen: () => answer.text });
  });

  test(`${name} names devices by their address, whatever they say themselves`, async (t) => {
    const front = await Front.start(t, name, { config: `${NAMES_CLIENTS}connections_per_address = 3\n` });
    const statuses = [];
    for (let n = 0; n < 5; n += 1) statuses.push(await upgraded(t, front, { "X-Forwarded-For": `198.51.100.${n}` }));
    assert.deepEqual(statuses, [101, 101, 101, 429, 429]);
  });

  test(`${name} shows nobody more than devices and readers need`, async (t) => {
    const front = await Front.start(t, name);
    const status = async (path, credential) => (await front.asked("GET", path, { headers: { authorization: `Bearer ${credential}` } })).statusCode;
    const token = await front.token("ann");
    assert.equal(await status("/v1/users/ann/feed", token), 200);
    for (const path of ["/", "/metrics", "/healthz", "/readyz", "/console", "/v1/stats"]) {
      assert.equal(await status(path, front.key), 404, `${path} with the API key`);
    }
  });
}
