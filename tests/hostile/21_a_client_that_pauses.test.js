// A client keeps its connections. If the server closes a connection that was quiet for too long, a request that is sent
// at this moment gets no answer. So an authenticated client may pause for longer than clients and load balancers keep a
// connection. A client that is not authenticated may pause for as long as a head may take. A head that has begun may
// take no longer than that, whether its client is authenticated or not.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const config = "[gateway]\nconnect_within_secs = 1\n";
const PAUSE_MS = 3000;

/** One connection; `ask` sends a request and answers its status, null if the connection ends first. */
async function kept(t, server) {
  const socket = connect({ port: server.port, host: "127.0.0.1" });
  const state = { socket, ended: false };
  let heard = "";
  socket.on("data", (bytes) => (heard += bytes));
  for (const event of ["end", "close", "error"]) socket.on(event, () => (state.ended = true));
  t.after(() => socket.destroy());
  state.ask = async (key) => {
    heard = "";
    socket.write(`GET /v1/users/ann/feed HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
    await until("an answer, or the end", () => state.ended || /\r\n\r\n./.test(heard));
    return /\r\n\r\n./.test(heard) ? Number(heard.split(" ")[1]) : null;
  };
  return state;
}

test("a request after a pause gets its answer over the same connection", async (t) => {
  const server = await Server.start(t, { config });
  const token = await server.token("ann");
  const [backend, reader, stranger] = await Promise.all([1, 2, 3].map(() => kept(t, server)));
  assert.deepEqual(await Promise.all([backend.ask(server.key), reader.ask(token), stranger.ask("nobody's")]), [200, 200, 401]);
  await until("the stranger's connection ends", () => stranger.ended);
  await sleep(PAUSE_MS);
  assert.deepEqual(await Promise.all([backend.ask(server.key), reader.ask(token)]), [200, 200]);
  backend.socket.write("GET /v1/stats HTTP/1.1\r\n");
  await until("a head that does not end is cut", () => backend.ended);
  assert.equal(await reader.ask(token), 200, "the other one goes on");
});
