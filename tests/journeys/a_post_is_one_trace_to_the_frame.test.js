import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { Collector } from "../actors/collector.js";
import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

/** The spans of a post that reaches one device, each the parent of the next one. */
const WAY = ["POST /v1/items", "accept", "job", "step", "push", "frame"];

const LEFT_OUT = /spans of traces were left out/;

const hex = (bytes) => randomBytes(bytes).toString("hex");

const publish = (server, text, headers) => server.call("POST", "/v1/items", { author: "bob", body: { text } }, { headers });

/** A server whose writes are traced, and a phone on which `ann` sees what `bob` posts. */
async function traced(t, config) {
  const server = await Home.start(t, { config });
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann", { device: "ann-phone" });
  await phone.subscribed();
  const shows = ({ id }) => phone.shows("the post", (items) => items.some((item) => item.id === id));
  return { server, shows };
}

/** Each of `names` is above the next one. */
function descends(spans, names) {
  const named = names.map((name) => spans.find((span) => span.name === name));
  named.slice(1).forEach((span, above) => assert.equal(span.parent, named[above].id, `${span.name} is below ${names[above]}`));
  return named;
}

test("a post with a traceparent is one trace from the request to the frame, in every process", async (t) => {
  const collector = await Collector.start(t);
  const { server, shows } = await traced(t, collector.config());
  const [trace, above] = [hex(16), hex(8)];
  const { id } = await publish(server, "hello", { traceparent: `00-${trace}-${above}-01`, "x-request-id": "call-7" });
  await shows({ id });

  const spans = await collector.trace(trace, WAY);
  const [request, accept, job, step, push, frame] = descends(spans, WAY);
  assert.equal(request.parent, above);
  assert.deepEqual(request.attributes, {
    "feedgate.request_id": "call-7",
    "http.request.method": "POST",
    "http.route": "/v1/items",
    "http.response.status_code": 201,
  });
  assert.deepEqual([accept.attributes, step.attributes], [{ "feedgate.changes": 1 }, { "feedgate.inboxes": 1 }]);
  assert.deepEqual([request, job, push].map(({ kind }) => kind), ["SPAN_KIND_SERVER", "SPAN_KIND_CONSUMER", "SPAN_KIND_CONSUMER"]);
  for (const span of spans) assert.ok(span.failed === null && span.began <= span.ended, JSON.stringify(span));
  assert.ok(accept.ended <= step.ended && step.began >= job.began && frame.ended >= push.ended, "they tell the order of things");
  if (server.workers) {
    const places = [request, accept, job, step, push, frame].map(({ service }) => service);
    assert.deepEqual(places, ["gateway", "gateway", "timeline", "timeline", "gateway", "gateway"]);
    assert.notEqual(request.instance, push.instance, "the phone is at another gateway");
  }
  for (const { attributes, resource } of spans) assert.doesNotMatch(JSON.stringify({ attributes, resource }), /\bann|\bbob|127\.0\.0\.1/);
});

test("a post without one is a trace with the id of its request, and so are an edit and a delete", async (t) => {
  const collector = await Collector.start(t);
  const { server, shows } = await traced(t, collector.config());
  const ids = [hex(16), hex(16), hex(16)];
  const { id } = await publish(server, "first", { "x-request-id": ids[0] });
  await shows({ id });
  await server.call("PATCH", `/v1/items/${id}`, { body: { text: "second" } }, { headers: { "x-request-id": ids[1], "if-match": '"1"' } });
  await collector.trace(ids[1], ["PATCH /v1/items/{id}", ...WAY.slice(1)]);
  await server.call("DELETE", `/v1/items/${id}`, undefined, { headers: { "x-request-id": ids[2] } });
  for (const [trace, first] of [[ids[0], WAY[0]], [ids[1], "PATCH /v1/items/{id}"], [ids[2], "DELETE /v1/items/{id}"]]) {
    const spans = await collector.trace(trace, [first, ...WAY.slice(1)]);
    const [request] = descends(spans, [first, ...WAY.slice(1)]);
    assert.equal(request.parent, "", "the trace begins with it");
  }
});

test("what is addressed to a reader has its trace too; what a caller does not sample has none, nor what is refused", async (t) => {
  const collector = await Collector.start(t);
  const { server, shows } = await traced(t, collector.config());
  const [unsampled, refused, trace] = [hex(16), hex(16), hex(16)];
  const stranger = { token: "no-key", headers: { traceparent: `00-${refused}-${hex(8)}-01` } };
  assert.equal((await server.request("POST", "/v1/items", { author: "bob", body: 1 }, stranger)).status, 401);
  await shows(await publish(server, "not traced", { traceparent: `00-${unsampled}-${hex(8)}-00` }));
  const direct = { author: "bob", body: 1, audience: { users: ["ann"] } };
  await shows(await server.call("POST", "/v1/items", direct, { headers: { traceparent: `00-${trace}-${hex(8)}-01` } }));
  descends(await collector.trace(trace, WAY), WAY);
  assert.deepEqual(collector.spans.filter((span) => [unsampled, refused].includes(span.trace)), []);
});

test("a sample of 0 sends nothing", async (t) => {
  const collector = await Collector.start(t);
  const { server, shows } = await traced(t, collector.config("sample = 0.0\n"));
  await shows(await publish(server, "hello", { traceparent: `00-${hex(16)}-${hex(8)}-01` }));
  await Promise.all((server.members ?? [server]).map((member) => member.stop()));
  assert.equal(collector.requests, 0, "not even at the end");
});

test("a collector that refuses or is silent costs no post, and is said once", async (t) => {
  const collector = await Collector.start(t);
  const { server, shows } = await traced(t, collector.config());
  const [gateway] = server.gateways;
  collector.mode = "refuses";
  for (const before of [0, 1, 2]) {
    await shows(await publish(server, `post ${before}`));
    await until("one more request", async () => collector.requests > before, { seen: () => collector.requests });
  }
  await until("the line", async () => gateway.lines(LEFT_OUT).length > 0, { seen: () => gateway.log() });
  const [line] = gateway.lines(LEFT_OUT);
  assert.match(line, /WARN .*503/);
  collector.mode = "silent";
  for (const n of [3, 4, 5]) await shows(await publish(server, `post ${n}`));
  assert.equal(gateway.lines(LEFT_OUT).length, 1, gateway.log());
  collector.mode = "takes";
  const id = hex(16);
  await shows(await publish(server, "after", { "x-request-id": id }));
  await collector.trace(id, WAY);
});
