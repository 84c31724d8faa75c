// TLS of the port of devices: the unmodified SDK, certificates of an authority of the test's own, and openssl's handshake.

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import { test } from "node:test";
import { connect } from "node:tls";

import { Phone } from "../actors/phone.js";
import { TlsServer } from "../actors/tls.js";
import { until } from "../actors/until.js";
import { missesPosts } from "./away.js";

/** Does a handshake and ends it; gives the session's version and the certificate that the server showed. */
function handshake(server) {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...server.trusting, port: server.devices, ALPNProtocols: ["http/1.1"] }, () => {
      resolve({ version: socket.getProtocol(), inside: socket.alpnProtocol, shown: socket.getPeerCertificate().fingerprint256 });
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

for (const version of ["TLSv1.2", "TLSv1.3"]) {
  test(`a phone gets live posts, large ones, and what it missed, over ${version}`, async (t) => {
    const server = await TlsServer.start(t, { versions: { minVersion: version, maxVersion: version } });
    assert.deepEqual({ ...(await handshake(server)), shown: undefined }, { version, inside: "http/1.1", shown: undefined });
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, server, "ann");
    await phone.subscribed();

    await server.publish("bob", { text: "x".repeat(30_000) });
    await server.publishMany("bob", 300);
    await phone.shows("all of them, of which one takes two records", (items) => items.length === 301);
    assert.equal(phone.pushes, 301);

    await missesPosts(phone, server);
  });
}

test("a new certificate is served once it is on disk, and no session ends", async (t) => {
  const server = await TlsServer.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const shows = async (certificate) => (await handshake(server)).shown === new X509Certificate(certificate).fingerprint256;

  const second = await server.renew();
  await until("the second certificate is served", () => shows(second));
  await server.put("tls.pem", "no certificate");
  await until("the log names the file", () => server.process.said(/WARN.*the certificate of before stays.*tls\.pem.*BEGIN CERTIFICATE/));
  assert.ok(await shows(second), "what was right before is served");
  const third = await server.renew();
  await until("the third certificate is served", () => shows(third));

  await server.publish("bob", { text: "hello" });
  await phone.shows("the post", (items) => items.length === 1);
  assert.equal(phone.connects, 1);
});

test("an answer that goes on for as long as a session comes by TLS too", async (t) => {
  const server = await TlsServer.start(t);
  await server.follow("ann", "bob");
  const token = await server.token("ann");
  const lines = [];
  const to = { path: "/connection/http_stream", method: "POST", headers: { "content-type": "application/json" } };
  const asked = request({ ...server.trusting, port: server.devices, ...to }, (answer) => {
    answer.setEncoding("utf8").on("data", (text) => lines.push(text));
  });
  t.after(() => asked.destroy());
  const commands = [{ id: 1, connect: { token } }, { id: 2, subscribe: { channel: "feed", data: { deliver: "items" } } }];
  asked.on("error", () => undefined).end(commands.map((command) => JSON.stringify(command)).join("\n"));
  await until("the subscription", () => lines.join("").includes('"id":2'));
  await server.publish("bob", { text: "hello" });
  await until("the post", () => lines.join("").includes('"hello"'));
});

test("the port of devices takes no API key, and the port of backends no TLS", async (t) => {
  const server = await TlsServer.start(t);
  const headers = { authorization: `Bearer ${server.key}` };
  const status = await new Promise((resolve, reject) => {
    const asked = request({ ...server.trusting, port: server.devices, path: "/v1/stats", headers }, (answer) => resolve(answer.resume().statusCode));
    asked.on("error", reject).end();
  });
  assert.equal(status, 404);
  assert.equal((await server.request("GET", "/v1/stats")).status, 200);
});

test("a hand-over keeps the port of devices and that of backends, and a phone comes back by TLS", async (t) => {
  const server = await TlsServer.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const { pid } = server.process;
  process.kill(pid, "SIGUSR2");
  await until("the new program has taken over", () => server.process.said(/took over from the process before/), { seen: () => server.process.log() });
  await server.publish("bob", { text: "hello" });
  await phone.shows("the post", (items) => items.length === 1);
  assert.deepEqual([phone.connects, phone.stopped, server.process.pid], [2, null, pid]);
  assert.equal((await handshake(server)).version, "TLSv1.3");
});
