// Faults 21 and 41: one address floods with unfinished heads and with upgrades. It gets its share, in memory and in
// connections, and clients of other addresses notice nothing. 127.0.0.1 is trusted here, 127.0.0.2 and up are not.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { Wire } from "../actors/wire.js";

const STRANGER = "127.0.0.2";
const NEIGHBOUR = "127.0.0.3";

const config = (more = "") => `[gateway]\ntrusted_proxies = ["127.0.0.1"]\nconnect_within_secs = 120\n${more}\n`;

/** A socket from that address: what was answered, and whether it has ended. */
async function raw(t, server, from) {
  const socket = connect({ port: server.port, host: "127.0.0.1", localAddress: from });
  const state = { socket, answer: "", ended: false };
  socket.on("data", (bytes) => (state.answer += bytes));
  for (const event of ["end", "close", "error"]) socket.on(event, () => (state.ended = true));
  t.after(() => socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve).once("error", resolve));
  return state;
}

const connections = async (server) => (await server.call("GET", "/v1/stats")).sessions.connections;

test("a head has 16 KiB, and unfinished ones of one address take no memory to speak of", async (t) => {
  const server = await Server.start(t, { config: config() });
  const token = await server.token("ann");
  const head = `GET /connection/websocket HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(60_000)}`;
  const [{ memory: before }] = await server.memory();
  const heads = [];
  for (let n = 0; n < 2000; n += 1) {
    const one = await raw(t, server, STRANGER);
    one.socket.write(head);
    heads.push(one);
  }
  await until("each of them was refused", () => heads.every(({ ended }) => ended));
  const [{ memory: after }] = await server.memory();
  assert.ok(after - before < 40 << 20, `${(after - before) >> 20} MiB`);
  assert.ok(heads.some(({ answer }) => answer.startsWith("HTTP/1.1 431 ")), heads[0].answer);
  await Wire.open(t, server, { token, from: NEIGHBOUR });
});

test("one address holds so many connections that have not said who they are, and others find room", async (t) => {
  const server = await Server.start(t, { config: config("unauthenticated_per_address = 20\nupgrades_per_sec_per_address = 1000") });
  const silent = [];
  for (let n = 0; n < 50; n += 1) silent.push(n % 2 ? await raw(t, server, STRANGER) : await Wire.open(t, server, { from: STRANGER, upgraded: n < 20 }));
  await until("the surplus is refused", () => silent.filter(({ ended }) => ended).length === 30);
  assert.match(silent[49].answer, /^HTTP\/1.1 429 [^]*unauthenticated_per_address/);
  const warned = /WARN.*unauthenticated_per_address.*trusted_proxies.*127\.0\.0\.2/;
  await until("the log says so", () => server.said(warned), { seen: () => server.log() });
  const neighbour = await Wire.open(t, server, { token: await server.token("ann"), from: NEIGHBOUR });
  assert.deepEqual(await neighbour.ask("ping"), { id: 2, ping: {} });
  for (const { socket } of silent) socket.destroy();
  const again = async () => {
    const one = await raw(t, server, STRANGER);
    one.socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    await until("an answer", () => one.ended || one.answer !== "");
    return one.answer.startsWith("HTTP/1.1 200 ");
  };
  await until("the address is let in again", again);
});

test("strangers of one address who come and go are let in at a rate, and a flood of them is cut without a word", async (t) => {
  const server = await Server.start(t, { config: config("unauthenticated_per_address = 20") });
  const ask = async (from) => {
    const one = await raw(t, server, from);
    one.socket.end("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    await until("an answer, or none", () => one.ended);
    return Number(one.answer.split(" ")[1] ?? 0);
  };
  const begun = performance.now();
  const statuses = [];
  for (let n = 0; n < 600; n += 1) statuses.push(await ask(STRANGER));
  const secs = (performance.now() - begun) / 1000;
  const count = (wanted) => statuses.filter((status) => status === wanted).length;
  assert.ok(count(200) >= 40 && count(200) <= 40 + 20 * secs + 1, `${count(200)} were let in in ${secs} s`);
  assert.ok(count(429) <= 200 + 100 * secs + 1 && count(200) + count(429) + count(0) === 600, statuses.join());
  const warned = /WARN.*never say who they are.*unauthenticated_per_address.*127\.0\.0\.2/;
  await until("the log says so", () => server.said(warned), { seen: () => server.log() });
  const reader = await server.token("ann");
  for (let n = 0; n < 60; n += 1) await Wire.open(t, server, { token: reader, from: NEIGHBOUR });
  assert.equal(await ask(NEIGHBOUR), 200, "who says who they are is no stranger");
});

test("who has said who they are counts among the connections of an address only", async (t) => {
  const server = await Server.start(t, { config: config("unauthenticated_per_address = 5\nconnections_per_address = 30") });
  const opened = [];
  for (let n = 0; n < 30; n += 1) {
    opened.push(await Wire.open(t, server, { token: await server.token("ann", { device: `phone-${n}` }), from: STRANGER }));
  }
  const surplus = await raw(t, server, STRANGER);
  await until("the next is refused", () => surplus.ended);
  assert.match(surplus.answer, /^HTTP\/1.1 429 [^]*connections_per_address/);
  opened[0].socket.destroy();
  await until("one has left", async () => (await connections(server)) === 29);
  await Wire.open(t, server, { token: await server.token("ann", { device: "phone-30" }), from: STRANGER });
});

test("an upgrade flood of one address is refused with 429 and the neighbour's upgrade is not", async (t) => {
  const server = await Server.start(t, { config: config("upgrades_per_sec_per_address = 10") });
  const begun = performance.now();
  const statuses = await Promise.all(Array.from({ length: 200 }, async () => (await Wire.open(t, server, { from: STRANGER })).status));
  const secs = (performance.now() - begun) / 1000;
  const let_in = statuses.filter((status) => status === 101).length;
  assert.ok(let_in >= 20 && let_in <= 20 + 10 * secs + 1, `${let_in} of 200 upgrades were let in in ${secs} s`);
  assert.ok(statuses.every((status) => status === 101 || status === 429), statuses.join());
  assert.equal((await Wire.open(t, server, { from: NEIGHBOUR })).status, 101);
});

test("behind a trusted proxy the client that it names counts, and nobody else can name one", async (t) => {
  const server = await Server.start(t, { config: config('client_address = "x-forwarded-for"\nconnections_per_address = 3') });
  const token = await server.token("ann");
  const by = async (client, from) => (await Wire.open(t, server, { headers: { "X-Forwarded-For": client }, from })).status;
  const six = async (client, from) => {
    const statuses = [];
    for (let n = 0; n < 6; n += 1) statuses.push(await by(client(n), from).catch(() => "cut"));
    return statuses;
  };
  assert.deepEqual(await six((n) => `192.0.2.${n}, 198.51.100.7`), [101, 101, 101, 429, 429, 429]);
  assert.deepEqual(await six((n) => `2001:db8:1:2::${n}`), [101, 101, 101, 429, 429, 429], "an IPv6 client counts by its /64");
  assert.deepEqual(await six((n) => `198.51.100.${100 + n}`), Array(6).fill(101), "each of them has a share of its own");
  assert.deepEqual((await six((n) => `198.51.100.${200 + n}`, STRANGER)).slice(0, 3), [101, 101, 101]);
  const surplus = await raw(t, server, STRANGER);
  await until("its own address counts", () => surplus.ended);
  await Wire.open(t, server, { token });
});

test("a connection that begins with a PROXY header counts for the source it names", async (t) => {
  const server = await Server.start(t, { config: config('client_address = "proxy-protocol"\nconnections_per_address = 3') });
  const header = (...source) => {
    const rest = Buffer.from([...source, 10, 0, 0, 9, 0x12, 0x34, 0, 80]);
    return Buffer.concat([Buffer.from("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", "latin1"), rest]);
  };
  const asked = async (source) => {
    const one = await raw(t, server, "127.0.0.1");
    one.socket.write(Buffer.concat([header(...source), Buffer.from("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")]));
    await until("an answer", () => one.ended || one.answer !== "");
    return Number(one.answer.split(" ")[1]);
  };
  const statuses = [];
  for (let n = 0; n < 5; n += 1) statuses.push(await asked([198, 51, 100, 7]));
  assert.deepEqual(statuses, [200, 200, 200, 429, 429]);
  assert.equal(await asked([198, 51, 100, 8]), 200);
  assert.equal(await server.isReady(), true, "a backend of ours needs no header");
});
