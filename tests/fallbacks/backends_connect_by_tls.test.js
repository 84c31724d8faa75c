// TLS of the port of backends, with certificates on both sides: who shows none of the right authority is refused in the
// handshake, and new files end no connection.

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { request } from "node:http";
import { Agent, request as requestByTls } from "node:https";
import { test } from "node:test";
import { connect } from "node:tls";

import { AdminTlsServer } from "../actors/admin_tls.js";
import { Authority } from "../actors/authority.js";
import { Phone } from "../actors/phone.js";
import { Process } from "../actors/process.js";
import { until } from "../actors/until.js";

/** Another authority, with a directory of its own. */
async function anotherAuthority(server, name) {
  const directory = server.file(name);
  await mkdir(directory);
  return Authority.make(directory);
}

/** What a client of these options is refused with: the code and the text of its error, in small letters. */
async function refused(server, options) {
  const said = await server.ask("/readyz", options).then(() => null, ({ code, message }) => `${code} ${message}`);
  assert.notEqual(said, null, "it was let in");
  return said.toLowerCase().replaceAll("_", " ");
}

for (const version of ["TLSv1.2", "TLSv1.3"]) {
  test(`backends publish with a certificate, and without one of the authority they do not get in, over ${version}`, async (t) => {
    const server = await AdminTlsServer.start(t);
    Object.assign(server.trusting, { minVersion: version, maxVersion: version });
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, server, "ann");
    await phone.subscribed();
    await server.publish("bob", { text: "hello" });
    await phone.shows("the post", (items) => items.length === 1);

    const other = await anotherAuthority(server, "other");
    const { certificate, key } = await other.certificate({ name: "backend" });
    assert.match(await refused(server, {}), /alert (certificate required|handshake failure)/, "no certificate");
    assert.match(await refused(server, { cert: certificate, key }), /alert (unknown ca|decrypt error|bad certificate)/, "one of another authority");
    assert.equal((await server.ask("/readyz")).status, 200);
  });
}

test("the handshake says what is missing, and the port takes neither HTTP nor old versions of TLS", async (t) => {
  const server = await AdminTlsServer.start(t);
  assert.match(await refused(server, {}), /alert certificate required/);
  assert.match(await refused(server, { ...server.own, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" }), /alert (protocol version|handshake failure)/);
  assert.match(await refused(server, { ...server.own, ALPNProtocols: ["h2"] }), /alert no application protocol/);
  const plain = await new Promise((resolve) => {
    const asked = request({ host: "127.0.0.1", port: server.port, path: "/readyz" }, (answer) => resolve(answer.statusCode));
    asked.on("error", ({ code }) => resolve(code)).end();
  });
  assert.match(String(plain), /^HPE_|^ECONNRESET$/);
});

test("the port of devices takes no API key beside it, also on loopback", async (t) => {
  const server = await AdminTlsServer.start(t);
  const status = await new Promise((resolve, reject) => {
    const to = { host: "127.0.0.1", port: server.opened.port, path: "/v1/stats", headers: { authorization: `Bearer ${server.key}` } };
    request(to, (answer) => resolve(answer.resume().statusCode)).on("error", reject).end();
  });
  assert.equal(status, 404);
});

test("commands reach the server by TLS with the files that the environment names", async (t) => {
  const server = await AdminTlsServer.start(t);
  await server.put("own.pem", server.own.cert);
  await server.put("own.key", server.own.key);
  await server.put("ca.pem", server.authority.root);
  const right = { FEEDGATE_CA: server.file("ca.pem"), FEEDGATE_CERTIFICATE: server.file("own.pem"), FEEDGATE_CERTIFICATE_KEY: server.file("own.key") };
  const feedgate = (environment, ...args) => {
    const command = new Process([server.process.command().at(0), ...args, "--data", server.file("data")]);
    t.after(() => command.kill());
    command.start(environment);
    return command;
  };
  const ended = async (environment, ...args) => {
    const command = feedgate(environment, ...args);
    await command.settled("it ends", () => false);
    return [command.ended.code, command.log()];
  };
  const [code, said] = await ended(right, "follow", "ann", "bob");
  assert.equal(code, 0, said);
  const tail = feedgate(right, "tail", "--user", "ann");
  await until("the tail has begun", async () => (await server.call("GET", "/v1/stats")).sessions.sessions === 1 || tail.ended, { seen: () => tail.log() });
  assert.equal((await ended(right, "publish", "--author", "bob", '{"text":"hello"}'))[0], 0);
  await until("the tail shows the post", () => tail.said(/"hello"/) || tail.ended, { seen: () => tail.log() });
  assert.equal(tail.ended, null, tail.log());

  const { FEEDGATE_CA, ...anyone } = right;
  assert.match((await ended({ FEEDGATE_CA }, "follow", "ann", "bob"))[1], /https:\/\/127\.0\.0\.1:\d+: .*(CertificateRequired|certificate required).*; let FEEDGATE_CERTIFICATE and FEEDGATE_CERTIFICATE_KEY name/);
  assert.match((await ended(anyone, "follow", "ann", "bob"))[1], /https:\/\/127\.0\.0\.1:\d+: .*UnknownIssuer; let FEEDGATE_CA name/);
  assert.match((await ended({ ...right, FEEDGATE_CERTIFICATE: "" }, "follow", "ann", "bob"))[1], /FEEDGATE_CERTIFICATE and FEEDGATE_CERTIFICATE_KEY must both name a file/);
});

test("new certificates and another authority of clients hold at once, and no open connection ends", async (t) => {
  const server = await AdminTlsServer.start(t);
  // One connection that is kept all the time.
  const agent = new Agent({ ...server.trusting, ...server.own, keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const sockets = new Set();
  const kept = () => new Promise((resolve, reject) => {
    const asked = requestByTls({ agent, host: "127.0.0.1", port: server.port, path: "/readyz" }, (answer) => {
      sockets.add(answer.socket);
      answer.resume().on("end", () => resolve(answer.statusCode));
    });
    asked.on("error", reject).end();
  });
  assert.equal(await kept(), 200);
  const shown = (options) => new Promise((resolve, reject) => {
    const socket = connect({ ...server.trusting, ...options, port: server.port }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on("error", reject);
  });

  const second = new X509Certificate(await server.renew()).fingerprint256;
  await until("the second certificate is served", async () => (await shown(server.own)) === second);
  const before = server.own;
  const next = await anotherAuthority(server, "next");
  await server.trustClientsOf(next);
  await until("clients of the next authority are let in", () => server.isReady());
  await refused(server, before);
  assert.equal(await kept(), 200, "who is here stays");
  assert.equal(sockets.size, 1, "on the same connection");

  await server.put("clients.pem", "nothing");
  await until("the log names the file", () => server.process.said(/WARN.*the certificate of before stays.*admin_tls\.client_ca \S+clients\.pem.*the authorities of clients are not right/));
  assert.ok(await server.isReady(), "what was right before holds");
});
