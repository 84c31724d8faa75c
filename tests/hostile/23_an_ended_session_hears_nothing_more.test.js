// Fault 23: a token runs out, or a session is ended, while items come without a pause. The connection is closed, and
// nothing that was published after that moment reaches it, whether the device reads or not.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import { Device } from "../actors/device.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const GRACE_SECS = 1;

/** A device on a busy machine takes seconds until it has connected and got its first items. */
const TTL_SECS = 4;
const CONFIG = `[gateway]\nrefresh_grace_secs = ${GRACE_SECS}\n`;

/** Does `work` at a server where bob posts without a pause meanwhile: {server, posted: [{id, published_at}]}. */
async function busy(t, work) {
  const server = await Server.start(t, { config: CONFIG });
  await server.follow("ann", "bob");
  await server.page("ann");
  await server.drained();
  const posted = [];
  let going = true;
  const posting = (async () => {
    while (going) posted.push(await server.publish("bob", { text: "x".repeat(2000) }));
  })();
  try {
    await work({ server, posted });
  } finally {
    going = false;
    await posting;
  }
}

/** A device that gets items. */
async function listening(t, server, token) {
  const wire = await Device.open(t, server, { token });
  const { subscribe } = await wire.ask("subscribe", { channel: "feed", data: { deliver: "items" } });
  assert.ok(subscribe, "it is subscribed");
  await wire.until("items", () => pushed(wire).length > 3);
  return wire;
}

const pushed = (wire) => wire.lines.filter(({ push }) => push?.pub.data.item).map(({ push }) => push.pub.data.item);

/** Until items that were published after `moment` are accepted, so that there would be something to leak. */
const goneOn = (posted, moment) => until("posts after that", () => posted.filter(({ published_at }) => published_at > moment).length > 5);

test("a token that runs out ends its session with 3005, and nothing published later arrives", (t) =>
  busy(t, async ({ server, posted }) => {
    const { token, expires_at } = await server.call("POST", "/v1/users/ann/token", { device_id: "phone", ttl: TTL_SECS });
    const wire = await listening(t, server, token);
    assert.equal(await wire.closed(), 3005);
    const end = expires_at + GRACE_SECS * 1000;
    await goneOn(posted, end);
    assert.deepEqual(pushed(wire).filter(({ published_at }) => published_at > end), []);
    assert.equal((await server.request("GET", "/v1/users/ann/feed", undefined, { token })).status, 401);
  }));

test("a device that does not read gets nothing published after its token's end either", (t) =>
  busy(t, async ({ server, posted }) => {
    const { token, expires_at } = await server.call("POST", "/v1/users/ann/token", { device_id: "phone", ttl: TTL_SECS });
    const wire = await listening(t, server, token);
    wire.pause();
    const end = expires_at + GRACE_SECS * 1000;
    await goneOn(posted, end);
    const none = async () => (await server.call("GET", "/v1/users/ann/sessions")).sessions.length === 0;
    await until("its session is over", none);
    wire.resume();
    await wire.closed();
    assert.deepEqual(pushed(wire).filter(({ published_at }) => published_at > end), []);
  }));

test("a session that is ended gets 3503, and nothing that is accepted after the answer", (t) =>
  busy(t, async ({ server, posted }) => {
    const wire = await listening(t, server, await server.token("ann", { device: "phone" }));
    await server.call("DELETE", "/v1/users/ann/sessions/phone");
    const known = posted.length;
    assert.equal(await wire.closed(), 3503);
    await until("more posts", () => posted.length > known + 5);
    // The first of these may have been on its way when the answer came.
    const later = new Set(posted.slice(known + 1).map(({ id }) => id));
    assert.deepEqual(pushed(wire).filter(({ id }) => later.has(id)), []);
  }));

test("a request on a connection that is kept open is 401 once its token has run out", async (t) => {
  const server = await Server.start(t);
  const { token, expires_at } = await server.call("POST", "/v1/users/ann/token", { ttl: TTL_SECS });
  const socket = connect(server.port, "127.0.0.1");
  t.after(() => socket.destroy());
  let text = "";
  socket.setEncoding("utf8").on("data", (more) => (text += more));
  const ask = async () => {
    const before = text.split("HTTP/1.1 ").length;
    socket.write(`GET /v1/users/ann/feed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await until("an answer", () => text.split("HTTP/1.1 ").length > before);
    return Number(text.split("HTTP/1.1 ").at(-1).slice(0, 3));
  };
  assert.equal(await ask(), 200);
  await until("the token has run out", () => Date.now() >= expires_at);
  assert.equal(await ask(), 401);
});

test("what a device says after its end is not done", async (t) => {
  const server = await Server.start(t);
  const wire = await Device.open(t, server, { token: await server.token("ann", { device: "phone" }) });
  await server.call("DELETE", "/v1/users/ann/sessions/phone");
  assert.equal(await wire.closed(), 3503);
  assert.ok(wire.endedWell, "the close comes last");
  assert.deepEqual((await server.call("GET", "/v1/users/ann/sessions")).sessions, []);
});
