import assert from "node:assert/strict";
import { test } from "node:test";

import { handshake } from "../actors/handshake.js";
import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { TRANSPORT } from "../actors/transport.js";
import { until } from "../actors/until.js";

/** Waits for the first line of JSON of the gateway that `fits`, and gives all that fit then. */
async function lines(gateway, what, fits) {
  const found = () => gateway.lines(/^\{/).map((line) => JSON.parse(line)).filter(fits);
  await until(what, async () => found().length > 0, { seen: () => gateway.log() });
  return found();
}

const of = (id) => (line) => line.fields.request_id === id;

test("a line of the log has the id of its request, which the answer tells", async (t) => {
  const server = await Home.start(t, { config: 'log_format = "json"\n' });
  const [gateway] = server.gateways;
  const ask = (headers, path = "/v1/users/ann/feed") => fetch(server.url + path, { headers });
  const refused = async (headers) => {
    const answer = await ask({ authorization: "Bearer a.b.c", ...headers });
    assert.equal(answer.status, 401);
    return answer.headers.get("x-request-id");
  };
  assert.equal(await refused({ "x-request-id": "call-7" }), "call-7");
  const [line, ...more] = await lines(gateway, "the line of the request", of("call-7"));
  assert.deepEqual([line.level, line.message, more], ["INFO", "a token was refused", []]);
  assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.ok(Math.abs(Date.parse(line.time) - Date.now()) < 3_600_000, line.time);

  const fresh = await refused({});
  assert.match(fresh, /^[0-9a-f]{32}$/);
  assert.equal((await lines(gateway, "the line of the other request", of(fresh))).length, 1);
  for (const unusable of ["x".repeat(129), "two words"]) {
    const id = await refused({ "x-request-id": unusable });
    assert.match(id, /^[0-9a-f]{32}$/);
    assert.notEqual(id, fresh);
  }
  assert.deepEqual(gateway.lines(/two words/), []);

  for (const [path, status] of [["/healthz", 200], ["/nothing", 404], ["/connection/websocket", 426]]) {
    const answer = await ask({ "x-request-id": "any" }, path);
    assert.deepEqual([answer.status, answer.headers.get("x-request-id")], [status, "any"], path);
  }
});

test("as text, a line has the id of its request as well", async (t) => {
  const server = await Home.start(t);
  const [gateway] = server.gateways;
  const headers = { authorization: "Bearer a.b.c", "x-request-id": "call-8" };
  assert.equal((await fetch(`${server.url}/v1/users/ann/feed`, { headers })).status, 401);
  const line = /request\{request_id=call-8\}.*a token was refused/;
  await until("the line of the request", async () => gateway.lines(line).length === 1, { seen: () => gateway.log() });
});

test("a refused connection leaves one line with its reason", async (t) => {
  const config = 'log_format = "json"\n[gateway]\nallowed_origins = ["https://app.example"]\n';
  const server = await Home.start(t, { config });
  const [gateway] = server.gateways;
  assert.equal(await handshake(server.url, "https://evil.example", { "x-request-id": "page-1" }), 403);
  assert.equal(await handshake(server.url, "https://evil.example", { "x-request-id": "page-2" }), 403);
  const [second] = await lines(gateway, "the line of the second page", of("page-2"));
  const first = await lines(gateway, "the line of the first page", of("page-1"));
  assert.equal(first.length, 1);
  const { level, message, fields } = first[0];
  assert.deepEqual([level, message], ["INFO", "a request for a session was refused"]);
  const why = "this Origin is not in gateway.allowed_origins";
  assert.deepEqual(fields, { client: "trusted", request_id: "page-1", suppressed: 0, why });
  assert.equal(second.fields.why, why);
  assert.deepEqual(gateway.lines(/evil\.example/), [], "what the client sent is in no line");
});

test("a device that comes and goes is told at debug, and one that is thrown out at info", async (t) => {
  const config = 'log_format = "json"\nlog = "info,feedgate_gateway::connection=debug"\n';
  const server = await Home.start(t, { config });
  const gateway = server.gateways.at(-1);
  const message = (text, device) => (line) => line.message === text && line.fields.device === device;
  const phone = await Phone.open(t, server, "ann", { device: "phone" });
  await phone.subscribed();
  const [came] = await lines(gateway, "the phone has come", message("a device has connected", "phone"));
  assert.equal(came.level, "DEBUG");
  const { connection, ...rest } = came.fields;
  assert.deepEqual(rest, { user: "ann", device: "phone", client: "trusted", transport: TRANSPORT, suppressed: 0 });

  phone.close();
  const [went] = await lines(gateway, "the phone has gone", message("a connection has ended", "phone"));
  const reason = TRANSPORT === "websocket" ? "goodbye" : "gone";
  assert.deepEqual([went.level, went.fields.reason, went.fields.code], ["DEBUG", reason, undefined]);
  assert.equal(went.fields.connection, connection);
  assert.ok(went.fields.seconds >= 0 && went.fields.seconds < 3600, `${went.fields.seconds}`);

  const tablet = await Phone.open(t, server, "ann", { device: "tablet" });
  await tablet.subscribed();
  await server.call("DELETE", "/v1/users/ann/sessions/tablet");
  const [thrown] = await lines(gateway, "the tablet was thrown out", message("a connection was closed", "tablet"));
  assert.deepEqual([thrown.level, thrown.fields.reason, thrown.fields.code], ["INFO", "force_disconnect", 3503]);
});
