// Fault 33: silent sockets and devices take all the descriptors they can get while a backend posts. The server admits
// fewer than it could open: stores, engines and backends keep theirs, and nothing stays broken.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { Wire } from "../actors/wire.js";

const LIMIT = 600;
const under = (limit) => () => ["bash", "-c", `ulimit -Sn 128; ulimit -Hn ${limit}; exec "$@"`, "bash"];
const config = "[gateway]\nconnect_within_secs = 240\n";

const open = async (server) => (await readdir(`/proc/${server.pid}/fd`)).length;

/** A post over a connection of its own, as a backend that has just started makes it; answers its status. */
function post(server, n) {
  const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" };
  const agent = new Agent({ keepAlive: false });
  return new Promise((resolve, reject) => {
    const asked = request(`${server.url}/v1/items`, { method: "POST", headers, agent }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode));
    });
    asked.on("error", reject).end(JSON.stringify({ author: "ann", body: { n } }));
  });
}

function silent(t, server) {
  const socket = connect(server.port, "127.0.0.1").on("error", () => undefined);
  t.after(() => socket.destroy());
  return new Promise((resolve) => socket.once("connect", () => resolve(socket)).once("close", () => resolve(socket)));
}

test("silent sockets and devices on every descriptor leave room for backends and stores", async (t) => {
  const server = await Server.start(t, { config, under: under(LIMIT) });
  const told = /INFO.*descriptors.*limit=600.*reserve=\d+.*http=\d+.*devices=\d+/;
  await until("the log says how many there are", () => server.said(told), { seen: () => server.log() });
  const devices = [];
  for (let tens = 0; tens < 40; tens += 1) devices.push(...(await Promise.all(Array.from({ length: 10 }, () => Wire.open(t, server)))));
  const admitted = devices.filter(({ status }) => status === 101).length;
  assert.ok(admitted > 200 && admitted < 350, `${admitted} devices`);
  assert.ok(devices.every(({ status }) => status === 101 || status === 503), "the others are told to come again");
  const sockets = [];
  for (let n = 0; n < 700; n += 1) sockets.push(await silent(t, server));
  for (let n = 0; n < 100; n += 1) {
    assert.equal(await post(server, n), 201);
    sockets.push(await silent(t, server));
  }
  assert.ok((await open(server)) < LIMIT - 100, `${await open(server)} descriptors are open`);
  await server.drained();
  for (const { socket } of devices) socket.destroy();
  for (const socket of sockets) socket.destroy();
  await until("the devices have left", async () => (await server.call("GET", "/v1/stats")).sessions.connections === 0);
  assert.equal(await post(server, 100), 201);
  assert.equal(await server.isReady(), true);
  assert.doesNotMatch(server.log(), /open files|ERROR/);
});

test("with too few descriptors the start is refused with what to do", async (t) => {
  const server = await Server.start(t, { config, under: under(300) }).catch((error) => error);
  assert.match(String(server), /RLIMIT_NOFILE.*300.*at least 320.*ulimit -n/);
});

test("2,500 connections at once find room in the listen backlog while the server is busy", async (t) => {
  const server = await Server.start(t);
  server.pause();
  const waiting = await Promise.all(Array.from({ length: 2500 }, () => silent(t, server)));
  server.resume();
  assert.ok(waiting.every((socket) => socket.remotePort === server.port));
  await until("the server answers", () => server.isReady());
});
