import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Scrape, documented } from "../actors/openmetrics.js";
import { Phone } from "../actors/phone.js";
import { TOOLS } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { TRANSPORT } from "../actors/transport.js";
import { until } from "../actors/until.js";

const file = (path) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");

test("the numbers tell a known story exactly", async (t) => {
  const server = await Server.start(t);
  const before = await Scrape.of(server.url, server.key);
  await server.follow("ann", "bob");
  const phones = [];
  for (const device of ["phone", "tablet"]) phones.push(await Phone.open(t, server, "ann", { device }));
  for (const phone of phones) await phone.subscribed();
  await server.publishMany("bob", 1);
  for (const text of ["two", "three"]) await server.publish("bob", { text }, { id: text === "two" ? "2" : "3" });
  const taken = await server.request("POST", "/v1/items", { author: "bob", body: 1, id: "3" });
  assert.equal(taken.status, 409);
  assert.equal((await fetch(server.websocket.replace("ws", "http"))).status, 426);
  for (const phone of phones) await phone.shows("three posts", (items) => items.length === 3);
  await server.drained();

  // A job leaves the queue before its worker counts it.
  const after = await until("the jobs are counted", async () => {
    const scrape = await Scrape.of(server.url, server.key);
    return scrape.value("feedgate_jobs_total", { lane: "posts", outcome: "done" }) > 0 && scrape;
  });
  const grown = (name, labels) => after.value(name, labels) - before.value(name, labels);
  assert.equal(after.value("feedgate_sessions"), 2);
  assert.equal(after.value("feedgate_users_online"), 1);
  assert.equal(after.value("feedgate_devices_online"), 2);
  assert.equal(after.value("feedgate_connections", { transport: TRANSPORT }), 2);
  assert.equal(grown("feedgate_session_requests_total", { outcome: "accepted" }), 2);
  assert.equal(grown("feedgate_session_requests_total", { outcome: "malformed" }), 1);
  assert.equal(grown("feedgate_writes_total", { outcome: "accepted" }), 4, "a follow and three posts");
  assert.equal(grown("feedgate_writes_total", { outcome: "refused" }), 1);
  assert.equal(grown("feedgate_accept_seconds_count"), 5);
  assert.equal(grown("feedgate_http_requests_total", { route: "/v1/items", status: "2xx" }), 2);
  assert.equal(grown("feedgate_http_requests_total", { route: "/v1/items", status: "4xx" }), 1);
  assert.equal(grown("feedgate_http_request_seconds_count", { route: "/v1/items/batch" }), 1);
  assert.equal(grown("feedgate_http_problems_total", { type: "conflict" }), 1);
  assert.equal(after.value("feedgate_archive_items"), 3);
  assert.equal(after.value("feedgate_events_outstanding"), 0);
  assert.equal(after.value("feedgate_oldest_event_age_seconds"), 0);
  assert.equal(grown("feedgate_jobs_total", { lane: "posts", outcome: "failed" }), 0);
  assert.ok(grown("feedgate_step_inboxes_sum") >= 1);
  assert.ok(grown("feedgate_wakes_total", { outcome: "sent" }) >= 2, "each phone was woken");
  assert.ok(grown("feedgate_publish_to_push_seconds_count") >= 2);
  for (const store of ["archive", "inboxes", "jobs"]) assert.equal(after.value("feedgate_store_up", { store }), 1);

  phones[0].close();
  // Only over WebSocket does a device say goodbye.
  const reason = TRANSPORT === "websocket" ? "goodbye" : "gone";
  const left = async () => (await Scrape.of(server.url, server.key)).value("feedgate_session_ends_total", { reason });
  await until("the end of the session is counted", async () => (await left()) === 1);
  assert.equal((await Scrape.of(server.url, server.key)).value("feedgate_sessions"), 1);
});

test("a thousand users add no series", async (t) => {
  const server = await Server.start(t);
  const before = await Scrape.of(server.url, server.key);
  const ops = Array.from({ length: 1000 }, (_, n) => ({ op: "follow", user: `reader-${n}`, author: "bob" }));
  await server.call("POST", "/v1/follows/batch", { ops });
  for (let n = 0; n < 100; n += 1) await server.page(`reader-${n}`);
  await fetch(`${server.url}/v1/nothing/reader-1`);
  const after = await Scrape.of(server.url, server.key);
  assert.ok(after.value("feedgate_archive_users") >= 1000);
  assert.equal(after.samples.length, before.samples.length);
  assert.ok(after.samples.length < 1500, `${after.samples.length} series`);
  assert.ok(!JSON.stringify(after.families).includes("reader-"), "no name is in a label");
});

test("who may not read does not see the numbers", async (t) => {
  const server = await Server.start(t);
  const status = async (authorization) =>
    (await fetch(`${server.url}/metrics`, { headers: authorization ? { authorization } : {} })).status;
  assert.equal(await status(), 401);
  assert.equal(await status("Bearer nonsense"), 401);
  assert.equal(await status(`Bearer ${await server.token("ann")}`), 403);
  assert.equal(await status(`Bearer ${server.key}`), 200);
});

test("the table, the rules and the board name metrics that there are", async (t) => {
  const server = await Server.start(t);
  const metrics = (await Scrape.of(server.url, server.key)).metrics;
  const { own, cluster } = await documented();
  assert.deepEqual(own, metrics.sort());

  const names = new Set([...own, ...cluster].map(([name]) => name));
  for (const path of ["deploy/prometheus/alerts.yml", "deploy/prometheus/dashboard.json"]) {
    const asked = (await file(path)).match(/feedgate_[a-z0-9_]+/g).map((name) => name.replace(/_(bucket|sum|count)$/, ""));
    assert.ok(asked.length > 5, path);
    for (const name of asked) assert.ok(names.has(name), `${path} asks for ${name}, which is not there`);
  }
});

test("each rule and each panel is a query that can be read", () => {
  const python = join(TOOLS, "python", "bin", "python");
  const checked = spawnSync(python, [fileURLToPath(new URL("promql.py", import.meta.url))], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stderr);
});
