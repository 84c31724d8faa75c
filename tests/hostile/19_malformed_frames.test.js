// Fault 19: each frame that RFC 6455 forbids ends its own connection with the right code, and each frame that it allows
// is understood, however odd. These are the relevant ones of Autobahn's cases 1 to 7, against the real server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { codec } from "../actors/codec.js";
import { Server } from "../actors/server.js";
import { BINARY, CLOSE, CONTINUATION, closing, FOREIGN, frame, MESSAGE, PING, PONG, TEXT, Wire } from "../actors/wire.js";

const AT_ONCE = 16;

/** Runs `of` on every case, some at a time, and tells of all that went wrong. */
async function each(cases, of) {
  const wrong = [];
  const waiting = [...cases];
  const work = async () => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      await of(one).catch((error) => wrong.push(`${one.what}: ${error.message}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  assert.deepEqual(wrong, []);
}

/** Each ends with `code` before it has connected and afterwards. */
async function eachEnds(t, cases) {
  const server = await Server.start(t);
  const token = await server.token("ann");
  const twice = cases.flatMap((one) => [one, { ...one, what: `${one.what}, connected`, token }]);
  await each(twice, async ({ bytes, code, token }) => {
    const wire = await Wire.open(t, server, { token });
    wire.send(...bytes);
    assert.equal(await wire.closed(), code);
  });
  assert.equal(await server.isReady(), true);
}

const { ping } = codec;
const hex = (text) => Buffer.from(text.replaceAll(" ", ""), "hex");

/** `payload` in frames that are cut at these places; the first has this opcode. */
function cutAs(opcode, payload, ...at) {
  const ends = [...at, payload.length];
  return ends.map((end, i) => frame(i === 0 ? opcode : CONTINUATION, payload.subarray(ends[i - 1] ?? 0, end), { fin: i === at.length }));
}

const cut = (payload, ...at) => cutAs(MESSAGE, payload, ...at);

test("reserved bits end a connection with 1002", (t) => {
  const cases = [];
  for (const opcode of [MESSAGE, CLOSE, PING, PONG]) {
    for (const rsv of [1, 2, 3, 4, 5, 6, 7]) {
      cases.push({ what: `bits ${rsv}, opcode ${opcode}`, bytes: [frame(opcode, opcode === CLOSE ? closing(1000) : "{}", { rsv })], code: 1002 });
    }
  }
  cases.push({ what: "in a later fragment", bytes: [frame(MESSAGE, "{", { fin: false }), frame(CONTINUATION, "}", { rsv: 4 })], code: 1002 });
  return eachEnds(t, cases);
});

test("reserved opcodes end a connection with 1002, and that of the other format with 1003", (t) => {
  const cases = [];
  for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) {
    cases.push({ what: `opcode ${opcode}`, bytes: [frame(opcode)], code: 1002 });
    cases.push({ what: `opcode ${opcode} with a payload`, bytes: [frame(opcode, "{}")], code: 1002 });
    cases.push({ what: `opcode ${opcode} within a message`, bytes: [frame(MESSAGE, "{", { fin: false }), frame(opcode, "}")], code: 1002 });
  }
  cases.push({ what: "the other format", bytes: [frame(FOREIGN, "{}")], code: 1003 });
  cases.push({ what: "the other format in parts", bytes: [frame(FOREIGN, "{", { fin: false }), frame(CONTINUATION, "}")], code: 1003 });
  return eachEnds(t, cases);
});

test("frames without a mask end a connection with 1002", (t) => {
  const cases = [TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG].flatMap((opcode) => [
    { what: `opcode ${opcode}`, bytes: [frame(opcode, opcode === CLOSE ? closing(1000) : "{}", { masked: false })], code: 1002 },
    { what: `opcode ${opcode}, empty`, bytes: [frame(opcode, "", { masked: false })], code: 1002 },
  ]);
  return eachEnds(t, cases);
});

test("control frames in parts or above 125 bytes end a connection with 1002", (t) => {
  const long = "x".repeat(126);
  const cases = [CLOSE, PING, PONG].flatMap((opcode) => [
    { what: `a part of opcode ${opcode}`, bytes: [frame(opcode, "", { fin: false })], code: 1002 },
    { what: `126 bytes of opcode ${opcode}`, bytes: [frame(opcode, long)], code: 1002 },
    { what: `4,000 bytes of opcode ${opcode}`, bytes: [frame(opcode, "x".repeat(4000))], code: 1002 },
  ]);
  return eachEnds(t, cases);
});

test("fragments out of order end a connection with 1002", (t) =>
  eachEnds(t, [
    { what: "the end of nothing", bytes: [frame(CONTINUATION, "x")], code: 1002 },
    { what: "a part of nothing", bytes: [frame(CONTINUATION, "x", { fin: false })], code: 1002 },
    { what: "an empty end of nothing", bytes: [frame(CONTINUATION)], code: 1002 },
    { what: "a message within a message", bytes: [frame(MESSAGE, "{", { fin: false }), frame(MESSAGE, "}")], code: 1002 },
    { what: "a second first part", bytes: [frame(MESSAGE, "{", { fin: false }), frame(MESSAGE, "}", { fin: false })], code: 1002 },
    { what: "the other format within a message", bytes: [frame(MESSAGE, "{", { fin: false }), frame(FOREIGN, "}")], code: 1002 },
  ]));

/** Autobahn's 6.x: overlong, surrogates, beyond U+10FFFF, cut off, bytes that UTF-8 never has. */
const NOT_UTF8 = [
  "80", "bf", "80bf80", "c0", "c0af", "c1bf", "c3", "c328", "e0", "e080af", "e09fbf", "e228a1", "e28228", "eda080", "edadbf", "edae80",
  "edafbf", "edb080", "edbebf", "edbfbf", "eda080edb080", "edafbfedbfbf", "f0", "f08080af", "f08fbfbf", "f0288cbc", "f0908cbc80",
  "f0288c28", "f09080", "f4908080", "f5808080", "f7bfbfbf", "f8888080", "fbbfbfbfbf", "fc84808080", "fdbfbfbfbfbf", "fe", "ff", "fefeffff",
  "cebae1bdb9cf83cebcceb5eda080656469746564", "cebae1bdb9cf83cebcceb5f4908080656469746564", "cebae1bdb9cf83cebcceb5f4",
];

test("text that is not UTF-8 ends a connection with 1007, in one frame and across frames", (t) =>
  eachEnds(t, NOT_UTF8.flatMap((text) => {
    const payload = hex(text);
    const bytewise = cutAs(TEXT, payload, ...Array.from({ length: payload.length - 1 }, (_, i) => i + 1));
    return [
      { what: text, bytes: [frame(TEXT, payload)], code: 1007 },
      { what: `${text} byte by byte`, bytes: bytewise, code: 1007 },
      { what: `${text} behind a good part`, bytes: [frame(TEXT, "ok", { fin: false }), frame(CONTINUATION, payload)], code: 1007 },
    ];
  })));

test("a message that is no command ends a connection with 3501", (t) =>
  eachEnds(t, codec.malformed.map((message) => ({ what: message.toString("hex"), bytes: [frame(MESSAGE, message)], code: 3501 }))));

test("what is legal is understood, however it is cut", async (t) => {
  const server = await Server.start(t, { config: "[gateway]\ncommands_per_sec = 10000\n" });
  const token = await server.token("ann");
  const odd = "κόσμε \u{10ffff} \ufffe \u{0} \ud7ff \ue000 \ufffd 🂡";
  const text = ping(9, odd);
  const every = Array.from({ length: text.length - 1 }, (_, i) => i + 1);
  const cases = [
    { what: "one frame", bytes: [frame(MESSAGE, text)] },
    { what: "a frame for each byte", bytes: cut(text, ...every) },
    ...every.map((at) => ({ what: `cut at ${at}`, bytes: cut(text, at) })),
    { what: "empty parts", bytes: cut(text, 0, 0, 10, 10, text.length) },
    { what: "a ping between the parts", bytes: [frame(MESSAGE, text.subarray(0, 5), { fin: false }), frame(PING, "now"), frame(CONTINUATION, text.subarray(5))], pong: "now" },
    { what: "an empty ping", bytes: [frame(PING), frame(MESSAGE, text)], pong: "" },
    { what: "a ping of 125 bytes", bytes: [frame(PING, "p".repeat(125)), frame(MESSAGE, text)], pong: "p".repeat(125) },
    { what: "a ping that is no text", bytes: [frame(PING, hex("ff00fe")), frame(MESSAGE, text)], pong: hex("ff00fe") },
    { what: "a pong nobody asked for", bytes: [frame(PONG, "x"), frame(MESSAGE, text)] },
    { what: "126 bytes", bytes: [frame(MESSAGE, ping(9, "x".repeat(98)))] },
    { what: "60,000 bytes", bytes: [frame(MESSAGE, ping(9, "x".repeat(60_000)))] },
    { what: "60,000 bytes in parts of 1,000", bytes: cut(ping(9, "x".repeat(60_000)), ...Array.from({ length: 59 }, (_, i) => (i + 1) * 1000)) },
  ];
  await each(cases, async ({ bytes, pong }) => {
    const wire = await Wire.open(t, server, { token });
    wire.send(...bytes);
    assert.deepEqual(await wire.reply(9), { id: 9, ping: {} });
    const pongs = wire.frames.filter(({ opcode }) => opcode === PONG).map(({ payload }) => payload);
    assert.deepEqual(pongs, pong === undefined ? [] : [Buffer.from(pong)]);
    wire.socket.destroy();
  });
});

test("a byte at a time is understood as well", async (t) => {
  const server = await Server.start(t);
  const wire = await Wire.open(t, server, { token: await server.token("ann") });
  wire.socket.setNoDelay(true);
  for (const byte of Buffer.concat(cut(ping(9), 3, 7))) {
    wire.send([byte]);
    await new Promise(setImmediate);
  }
  assert.deepEqual(await wire.reply(9), { id: 9, ping: {} });
});

const LEGAL = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3001, 3999, 4000, 4500, 4999];
const ILLEGAL = [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 9999, 65535];

test("a legal close is answered with its own code, and an illegal one with 1002", (t) =>
  eachEnds(t, [
    ...LEGAL.map((code) => ({ what: `close ${code}`, bytes: [frame(CLOSE, closing(code))], code })),
    ...ILLEGAL.map((code) => ({ what: `close ${code}`, bytes: [frame(CLOSE, closing(code, "why"))], code: 1002 })),
    { what: "no code", bytes: [frame(CLOSE)], code: 1005 },
    { what: "half a code", bytes: [frame(CLOSE, "x")], code: 1002 },
    { what: "a reason of 123 bytes", bytes: [frame(CLOSE, closing(1000, "r".repeat(123)))], code: 1000 },
    { what: "a reason of 124 bytes", bytes: [frame(CLOSE, closing(1000, "r".repeat(124)))], code: 1002 },
    { what: "a reason that is not UTF-8", bytes: [frame(CLOSE, closing(1000, hex("cebaf4908080")))], code: 1007 },
    { what: "more behind a close", bytes: [frame(CLOSE, closing(1000)), frame(MESSAGE, "{}"), frame(PING, "x")], code: 1000 },
    { what: "a close within a message", bytes: [frame(MESSAGE, "{", { fin: false }), frame(CLOSE, closing(1000))], code: 1000 },
  ]));
