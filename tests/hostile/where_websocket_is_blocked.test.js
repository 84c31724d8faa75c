// Where WebSocket is blocked, sessions begin by HTTP, and devices send by requests of their own: what clients that mean
// harm do with those.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import { codec } from "../actors/codec.js";
import { Server } from "../actors/server.js";
import { Stream } from "../actors/stream.js";
import { until } from "../actors/until.js";

const POST = { method: "POST", headers: { "content-type": codec.type } };

const ping = (id) => ({ id, ping: {} });
const open = async (t, server, user) => Stream.open(t, server, { token: await server.token(user) });

test("a session that floods is ended with 3013, and its neighbour is served", async (t) => {
  const server = await Server.start(t);
  const [greedy, calm] = [await open(t, server, "greedy"), await open(t, server, "calm")];
  const statuses = new Set();
  for (let id = 2; !greedy.ended; id += 10) {
    const ids = Array.from({ length: 10 }, (_, i) => id + i);
    for (const status of await Promise.all(ids.map((id) => greedy.tell(ping(id))))) statuses.add(status);
  }
  assert.equal(greedy.code, 3013);
  assert.ok([...statuses].every((status) => [204, 404, 429].includes(status)), [...statuses].join());
  await until("its mailbox is gone", async () => (await greedy.tell(ping(2))) === 404);
  assert.equal(await calm.tell(ping(2)), 204);
  await until("the reply", () => calm.lines.some(({ id }) => id === 2));
});

test("nobody sends to another one's session without its whole id", async (t) => {
  const server = await Server.start(t);
  const [ann, eve] = [await open(t, server, "ann"), await open(t, server, "eve")];
  const { session } = ann.connected;
  const [number] = session.split(".");
  const foreign = [number, `${number}.`, `${number}.${eve.connected.session.split(".")[1]}`, ann.connected.client, `${session}A`, session.slice(0, -1)];
  for (const id of foreign) assert.equal(await eve.post({ data: codec.encode(ping(2)), session: id }), 404, id);
  assert.equal(await eve.post({ data: codec.encode(ping(2)), session, node: "another" }), 404, "an id is good at its own node alone");
  assert.ok(session.length > 60 && number !== eve.connected.session.split(".")[0]);
  assert.equal(await ann.tell(ping(2)), 204);
  await until("the reply", () => ann.lines.some(({ id }) => id === 2));
  assert.deepEqual([ann.lines.length, eve.lines.length], [1, 0], "nothing else came");
});

test("what is no command ends the session with 3501, and a body above the limit is refused", async (t) => {
  const server = await Server.start(t);
  const stream = await open(t, server, "ann");
  assert.equal(await stream.post({ data: Buffer.from("x".repeat(64 * 1024 + 1)) }), 413);
  assert.equal(await stream.post({ data: codec.malformed[0] }), 204);
  await until("the end", () => stream.ended);
  assert.equal(stream.code, 3501);
  const large = await fetch(`${server.url}/connection/http_stream`, { ...POST, body: " ".repeat(16_385) });
  assert.equal(large.status, 413);
});

test("bodies that never end hold a bounded number of requests of their address", async (t) => {
  const server = await Server.start(t, { config: "[gateway]\ntrusted_proxies = []\nreads_per_address = 4\n" });
  const stream = await open(t, server, "ann");
  const head = `POST /emulation HTTP/1.1\r\nhost: x\r\ncontent-type: ${codec.type}\r\ncontent-length: 1000\r\n\r\n{`;
  const sockets = new Set();
  const hold = () => {
    const socket = connect(server.port, "127.0.0.1");
    sockets.add(socket);
    // One that came while the device's own request had the last place was refused, and comes again.
    const again = () => {
      sockets.delete(socket.destroy());
      hold();
    };
    socket.on("error", () => undefined).once("data", again).write(head);
  };
  for (let n = 0; n < 4; n += 1) hold();
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  await until("the address has all it may have", async () => (await stream.tell(ping(2))) === 429);
  sockets.forEach((socket) => socket.destroy());
  await until("its next request is taken", async () => (await stream.tell(ping(3))) === 204);
});

test("bodies of many addresses that never end take no room from backends", async (t) => {
  const server = await Server.start(t, { config: '[gateway]\ntrusted_proxies = ["127.0.0.1"]\nunauthenticated_per_address = 100\n' });
  const head = "POST /emulation HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 163840\r\n\r\n{";
  for (let address = 2; address < 22; address += 1) {
    // An address may have 64 such requests at once, so one of these is answered when the others are waited for.
    let answered = false;
    for (let n = 0; n < 65; n += 1) {
      const socket = connect({ port: server.port, host: "127.0.0.1", localAddress: `127.0.0.${address}` });
      t.after(() => socket.destroy());
      socket.on("error", () => undefined).on("data", () => (answered = true)).write(head);
    }
    await until("one is refused", () => answered);
  }
  await server.call("POST", "/v1/items", { author: "ann", body: "x".repeat(60_000) });
});

test("a session without connect ends with 3502, and a device that is gone leaves nothing", async (t) => {
  const server = await Server.start(t, { config: "[gateway]\nconnect_within_secs = 1\n" });
  const answer = await fetch(`${server.url}/connection/http_stream`, { ...POST, body: "" });
  const [[last]] = codec.cut(Buffer.from(await answer.arrayBuffer()));
  assert.equal(last.push.disconnect.code, 3502);

  const stop = new AbortController();
  const body = codec.encode({ id: 1, connect: { token: await server.token("ann") } });
  await fetch(`${server.url}/connection/http_stream`, { ...POST, body, signal: stop.signal });
  const sessions = async () => (await server.call("GET", "/v1/users/ann/sessions")).sessions.length;
  await until("it is listed", async () => (await sessions()) === 1);
  stop.abort();
  await until("it is gone", async () => (await sessions()) === 0, { seen: sessions });
});
