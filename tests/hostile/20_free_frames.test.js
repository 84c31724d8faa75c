// Fault 20 and the frames of fault 41: a frame without a command counts against its sender as much as one with a
// command, from the first byte after the upgrade. So no socket keeps a core busy.

import assert from "node:assert/strict";
import { test } from "node:test";

import { codec } from "../actors/codec.js";
import { Server } from "../actors/server.js";
import { CONTINUATION, frame, MESSAGE, PING, PONG, Wire } from "../actors/wire.js";

const AT_ONCE = 500;

/**
 * Bytes of a flood, which the server must end long before: it takes 50 frames a second. It hears out 256 KiB after its
 * close frame; a peer that sends more is reset, and may lose the close frame.
 */
const FLOOD = 200_000;

const many = (one, count) => Buffer.concat(Array(count).fill(one));

/** Sends frames until the connection ends, and answers its close code. */
async function flood(wire, first, again) {
  wire.send(first);
  const some = many(again, AT_ONCE);
  for (let sent = 0; sent + some.length <= FLOOD && !wire.ended; sent += some.length) {
    wire.send(some);
    await new Promise(setImmediate);
  }
  return wire.closed();
}

/** A segment for each of so many frames: the server reads them one by one. */
async function trickle(wire, first, again) {
  wire.socket.setNoDelay(true);
  wire.send(first);
  for (let sent = 0; sent + again.length <= FLOOD && !wire.ended; sent += again.length) {
    wire.send(again);
    await new Promise(setImmediate);
  }
  return wire.closed();
}

const NOTHING = Buffer.alloc(0);
const FLOODS = [
  { what: "empty frames", first: NOTHING, again: frame(MESSAGE) },
  { what: "blank frames", first: NOTHING, again: frame(MESSAGE, codec.blank) },
  { what: "pings", first: NOTHING, again: frame(PING) },
  { what: "pongs", first: NOTHING, again: frame(PONG, "x") },
  { what: "empty continuations", first: frame(MESSAGE, "{", { fin: false }), again: frame(CONTINUATION, "", { fin: false }) },
  { what: "empty frames in parts", first: NOTHING, again: Buffer.concat([frame(MESSAGE, "", { fin: false }), frame(CONTINUATION)]) },
];

test("frames without a command end a connection with 3013, before connect and after it", async (t) => {
  const server = await Server.start(t);
  const token = await server.token("ann");
  for (const { what, first, again } of FLOODS) {
    for (const known of [undefined, token]) {
      const wire = await Wire.open(t, server, { token: known });
      assert.equal(await flood(wire, first, again), 3013, `${what}, ${known ? "connected" : "before connect"}`);
    }
  }
  assert.equal(await server.isReady(), true);
});

test("endless fragments of a byte, one segment each, end a connection at one of its limits", async (t) => {
  const server = await Server.start(t);
  for (const token of [undefined, await server.token("ann")]) {
    const wire = await Wire.open(t, server, { token });
    const code = await trickle(wire, frame(MESSAGE, "{", { fin: false }), frame(CONTINUATION, " ", { fin: false }));
    assert.ok([1009, 3013].includes(code), String(code));
  }
});

test("before connect a message has 16 KiB, and after it as much as the settings say", async (t) => {
  const server = await Server.start(t);
  const large = await Wire.open(t, server);
  large.tell({ id: 1, connect: { token: "x".repeat(16_384) } });
  assert.equal(await large.closed(), 1009);
  const parts = await Wire.open(t, server);
  parts.send(frame(MESSAGE, "x".repeat(16_300), { fin: false }), frame(CONTINUATION, "x".repeat(85)));
  assert.equal(await parts.closed(), 1009);
  const known = await Wire.open(t, server, { token: await server.token("ann") });
  known.send(frame(MESSAGE, codec.ping(7, "x".repeat(64_000))));
  assert.deepEqual(await known.reply(7), { id: 7, ping: {} });
});
