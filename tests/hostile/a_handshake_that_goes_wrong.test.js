// Peers of a port with TLS that do not get as far as HTTP: each is let go in time, a phone beside them goes on, and files
// that cannot be used stop a start with their names.

import assert from "node:assert/strict";
import { connect as connectPlain } from "node:net";
import { test } from "node:test";
import { connect } from "node:tls";

import { Phone } from "../actors/phone.js";
import { Process } from "../actors/process.js";
import { TlsServer } from "../actors/tls.js";

const QUICK = { config: "[gateway]\nconnect_within_secs = 1\n" };

/** Sends `bytes` without a handshake, and gives what came until the server has let go. */
function sends(server, bytes) {
  return new Promise((resolve) => {
    const got = [];
    const socket = connectPlain(server.devices, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (data) => got.push(data)).on("error", () => undefined);
    socket.once("close", () => resolve(Buffer.concat(got)));
  });
}

/** The code of the error that a handshake with these options ends with. */
function refused(server, options) {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...server.trusting, port: server.devices, ...options }, () => reject(new Error("it was let in")));
    socket.on("error", ({ code }) => resolve(code));
  });
}

/** The head of a record of a handshake that announces 512 bytes. */
const PART_OF_A_HELLO = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252]);

test("i18_a_peer_that_does_no_handshake_is_let_go_in_time_and_a_phone_goes_on", async (t) => {
  const server = await TlsServer.start(t, QUICK);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const silent = Array.from({ length: 50 }, () => sends(server, ""));
  const halves = Array.from({ length: 50 }, () => sends(server, PART_OF_A_HELLO));
  const plain = Array.from({ length: 50 }, () => sends(server, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"));
  for (const got of await Promise.all([...silent, ...halves])) assert.equal(got.length, 0);
  for (const got of await Promise.all(plain)) {
    assert.equal(got[0], 21, "an alert of TLS, and no answer of HTTP");
  }
  await server.publish("bob", { text: "hello" });
  await phone.shows("the post", (items) => items.length === 1);
  assert.equal(phone.connects, 1);
});

test("old versions of TLS and other protocols inside it are refused", async (t) => {
  const server = await TlsServer.start(t);
  const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" };
  assert.match(await refused(server, old), /ALERT_(PROTOCOL_VERSION|HANDSHAKE_FAILURE)/);
  assert.equal(await refused(server, { ALPNProtocols: ["h2"] }), "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL");
});

test("bytes that are no record end the session that they come in, and no other", async (t) => {
  const server = await TlsServer.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const bare = connectPlain(server.devices, "127.0.0.1");
  const ended = new Promise((resolve) => bare.once("close", resolve));
  await new Promise((resolve, reject) => connect({ ...server.trusting, socket: bare }, resolve).on("error", reject));
  bare.write("these bytes are no record of TLS");
  await ended;
  await server.publish("bob", { text: "hello" });
  await phone.shows("the post", (items) => items.length === 1);
  assert.equal(phone.connects, 1);
});

test("files that cannot be used stop the start, and the message names them", async (t) => {
  const server = await TlsServer.start(t);
  const { key } = await server.authority.certificate();
  const pem = server.file("tls.pem");
  const start = async () => {
    const again = new Process([server.process.command().at(0), "serve", "--data", server.file("other"), "--config", server.file("feedgate.toml"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    t.after(() => again.kill());
    again.start();
    await again.settled("it ends", () => false);
    return [again.ended.code, again.log()];
  };
  await server.put("tls.key", key);
  const [code, log] = await start();
  assert.equal(code, 1);
  assert.match(log, new RegExp(`tls\\.certificate ${pem} with tls\\.key .*cannot be used together`));
  await server.put("tls.key", "-----BEGIN NOTHING-----");
  assert.match((await start())[1], /the key is not right/);
  await server.put("tls.pem", "");
  assert.match((await start())[1], /it holds no section "BEGIN CERTIFICATE" of PEM/);
});
