// A refused client learns why, and so does the operator: at the log level of every day, in few lines, and without the
// credentials that were shown.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import { WebSocket } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { Wire } from "../actors/wire.js";

const GOOD = [
  "Host: x",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** The status line that a handshake with these lines more is answered with. */
function handshake(server, ...more) {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1");
    socket.once("data", (bytes) => {
      resolve(bytes.toString());
      socket.destroy();
    });
    socket.once("error", reject);
    socket.write(`GET /connection/websocket HTTP/1.1\r\n${[...GOOD, ...more].join("\r\n")}\r\n\r\n`);
  });
}

/** How the server ends a connection that shows this token. */
function refused(server, token) {
  return new Promise((resolve) => {
    const socket = new WebSocket(server.websocket);
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, connect: { token } }));
    socket.onclose = ({ code, reason }) => resolve({ code, reason: reason.toString() });
  });
}

test("a refused handshake and a refused token are told why, and logged without the token", async (t) => {
  const server = await Server.start(t);
  assert.match(await handshake(server), /^HTTP\/1.1 101 /);
  for (const twice of ["Sec-WebSocket-Key: c2Vjb25kIG5vbmNlIGhlcmU=", "Sec-WebSocket-Version: 13"]) {
    assert.match(await handshake(server, twice), /^HTTP\/1.1 400 [^]*once/, twice);
  }
  const origins = ["Origin: https://a.example", "Origin: https://b.example"];
  assert.match(await handshake(server, ...origins), /^HTTP\/1.1 400 [^]*Origin/);

  const good = await server.token("bob");
  const forged = `${good.slice(0, -6)}AAAAAA`;
  assert.deepEqual(await refused(server, forged), { code: 3500, reason: "invalid token: token's signature does not match" });
  const answer = await server.request("GET", "/v1/users/bob/feed", undefined, { token: "secret-words" });
  assert.equal(answer.status, 401);
  assert.match(answer.body.detail, /token is not a signed JWT/);

  const logged = /a token was refused.*signature does not match[^]*a token was refused.*not a signed JWT/;
  await until("the log says so", () => logged.test(server.log()), { seen: () => server.log() });
  assert.match(server.log(), /a request for a session was refused.*once/);
  assert.doesNotMatch(server.log(), /secret-words/);
  assert.ok(!server.log().includes(forged.split(".")[2]));
});

test("the log names the client whose token or handshake was refused, also behind a proxy that is trusted", async (t) => {
  const config = '[gateway]\ntrusted_proxies = ["127.0.0.1"]\nclient_address = "x-forwarded-for"\n';
  const server = await Server.start(t, { config });
  const told = (what, client) => new RegExp(`${what} was refused.* client=${client.replaceAll(".", "\\.")} `);
  const logs = (what, client) => until(`the log names ${client}`, () => told(what, client).test(server.log()), { seen: () => server.log() });

  const headers = (client) => ({ "X-Forwarded-For": client });
  const wire = await Wire.open(t, server, { headers: headers("192.0.2.1, 198.51.100.7") });
  await wire.ask("connect", { token: "secret-words" }).catch(() => {});
  await logs("a token", "198.51.100.7");
  const authorization = "Bearer secret-words";
  await fetch(`${server.url}/v1/users/bob/feed`, { headers: { authorization, ...headers("2001:db8:1:2::3") } });
  await logs("a token", "2001:db8:1:2::/64");
  await handshake(server, "X-Forwarded-For: 203.0.113.9", "Sec-WebSocket-Key: c2Vjb25kIG5vbmNlIGhlcmU=");
  await logs("a request for a session", "203.0.113.9");
  await Wire.open(t, server, { token: "secret-words", from: "127.0.0.2", headers: headers("198.51.100.8") }).catch(() => {});
  await logs("a token", "127.0.0.2");
  assert.doesNotMatch(server.log(), /secret-words|198\.51\.100\.8|192\.0\.2\.1/);
});

test("a thousand refusals are some lines in the log", async (t) => {
  const server = await Server.start(t);
  const ask = () => server.request("GET", "/v1/users/bob/feed", undefined, { token: "x" });
  const lines = () => server.lines(/was refused/);
  const begun = Date.now();
  for (let n = 0; n < 20; n += 1) await Promise.all(Array.from({ length: 50 }, ask));
  // Ten lines in ten seconds, however long the thousand took.
  const most = 10 * (1 + Math.ceil((Date.now() - begun) / 10_000));
  assert.ok(lines().length >= 10 && lines().length <= most, `${lines().length} lines, of ${most} at most`);
});
