// Fault 41: one reader asks for large answers and reads none of them, by HTTP and by WebSocket. The server's memory stays
// within that reader's share, a neighbour's requests are answered meanwhile, and the reader itself is served again once its
// stalled connections have been ended.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import { WebSocket } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const MIB = 1024 * 1024;
const BODY_BYTES = 63 * 1024;

/** What the server may grow by: a share of 8 MiB, what reads take while they run, and what the allocator keeps. Without a
    bound it would be several times as much. */
const GROWTH_MAX = 128 * MIB;

/** Many devices that connect at once may take longer than a device has by default. */
const MANY_DEVICES = "[gateway]\nconnect_within_secs = 240\n";

/** A server where a page of "greedy" holds large items and one of "calm" a small one. */
async function start(t, config) {
  const server = await Server.start(t, { config });
  await server.follow("greedy", "flood");
  await server.follow("calm", "bob");
  const body = { text: "x".repeat(BODY_BYTES) };
  for (let i = 0; i < 10; i += 1) {
    await server.call("POST", "/v1/items/batch", { ops: Array.from({ length: 10 }, () => ({ author: "flood", body })) });
  }
  await server.call("POST", "/v1/items", { author: "bob", body: "hello" });
  await server.drained();
  assert.equal((await server.feed("greedy")).length, 100);
  return server;
}

/** The neighbour reads and posts; answers the most memory seen meanwhile. */
async function neighbour(server, times) {
  const token = await server.token("calm");
  let most = 0;
  for (let n = 0; n < times; n += 1) {
    const page = await server.call("GET", "/v1/users/calm/feed?limit=1", undefined, { token });
    assert.equal(page.items[0].author, "bob");
    await server.call("POST", "/v1/items", { author: "bob", body: n });
    most = Math.max(most, (await server.memory())[0].memory);
  }
  return most;
}

function grownLittle(t, before, most) {
  const grown = `the server has grown by ${Math.round((most - before) / MIB)} MiB, from ${Math.round(before / MIB)}`;
  t.diagnostic(grown);
  assert.ok(most - before < GROWTH_MAX, grown);
}

/** Sends a request and reads nothing but the head of the answer. Answers its status and text. */
function unread(t, server, token) {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1");
    t.after(() => socket.destroy());
    socket.on("error", reject);
    socket.once("data", (some) => {
      socket.pause();
      const head = String(some).split("\r\n\r\n")[0];
      resolve({ status: Number(head.split(" ")[1]), head });
    });
    socket.write(`GET /v1/users/greedy/feed?limit=100 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
  });
}

test("300 answers by HTTP that one reader does not read hold no more than that reader's share", async (t) => {
  const server = await start(t);
  const before = (await server.memory())[0].memory;
  const token = await server.token("greedy");
  const answers = Promise.all(Array.from({ length: 300 }, () => unread(t, server, token)));
  const most = await neighbour(server, 30);
  const heads = await answers;
  grownLittle(t, before, Math.max(most, (await server.memory())[0].memory));
  const statuses = new Set(heads.map(({ status }) => status));
  assert.deepEqual([...statuses].sort(), [200, 429]);
  for (const { status, head } of heads) if (status === 429) assert.match(head, /^retry-after: [1-9]/im);
  const again = async () => (await server.request("GET", "/v1/users/greedy/feed?limit=100", undefined, { token })).status === 200;
  await until("the reader is served again", again);
});

/** A connection that has just been opened. */
async function opened(t, server) {
  const socket = new WebSocket(server.websocket);
  t.after(() => socket.terminate());
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  return socket;
}

/** A device that asks for page after page and the log from its start, and reads nothing from then on. */
async function deaf(t, server, epoch) {
  const token = await server.token("greedy");
  const socket = await opened(t, server);
  const subscribe = { channel: "feed", recover: true, epoch, offset: 0, data: { deliver: "items" } };
  const commands = [{ connect: { token } }, { subscribe }];
  for (let n = 0; n < 6; n += 1) {
    commands.push({ rpc: { method: "page", data: { limit: 100 } } });
    commands.push({ history: { channel: "feed", since: { epoch, offset: 0 }, limit: 100 } });
  }
  const connected = new Promise((resolve, reject) => socket.once("message", resolve).once("close", reject));
  socket.send(commands.map((command, i) => JSON.stringify({ id: i + 1, ...command })).join("\n"));
  await connected;
  socket.pause();
}

test("64 devices of one user that do not read hold no more than that user's share", async (t) => {
  const server = await start(t, `${MANY_DEVICES}pong_within_secs = 240\n`); // so that none is ended before it is counted
  const { position } = await server.page("greedy", { limit: 1 });
  const before = (await server.memory())[0].memory;
  await Promise.all(Array.from({ length: 64 }, () => deaf(t, server, position.epoch)));
  const most = await neighbour(server, 30);
  grownLittle(t, before, most);
  const { sessions } = await server.call("GET", "/v1/stats");
  assert.equal(sessions.connections, 64, "all of them were there");
});

/** A device that reads nothing once it has connected, and sends large commands behind one whose answer is large. */
async function talkative(t, server, user) {
  const token = await server.token(user);
  const socket = await opened(t, server);
  const connected = new Promise((resolve, reject) => socket.once("message", resolve).once("close", reject));
  socket.send(JSON.stringify({ id: 1, connect: { token } }));
  await connected;
  socket.pause();
  for (let id = 2; id < 4; id += 1) socket.send(JSON.stringify({ id, rpc: { method: "page", data: { limit: 100 } } }));
  for (let id = 4; id < 24; id += 1) socket.send(JSON.stringify({ id, refresh: { token: "x".repeat(60_000) } }));
}

test("commands of 256 devices that wait behind answers nobody reads hold little of what was sent", async (t) => {
  const server = await start(t, `${MANY_DEVICES}commands_per_sec = 10000\n`);
  const users = ["greedy", "greedy-2", "greedy-3", "greedy-4"];
  for (const user of users) await server.follow(user, "flood");
  await server.drained();
  for (const user of users) await server.page(user, { limit: 1 });
  const before = (await server.memory())[0].memory;
  await Promise.all(users.flatMap((user) => Array.from({ length: 64 }, () => talkative(t, server, user))));
  const most = await neighbour(server, 60);
  grownLittle(t, before, most);
});
