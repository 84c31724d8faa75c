import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Scrape, documented } from "../actors/openmetrics.js";
import { until } from "../actors/until.js";

test("a gateway tells what it serves and a worker what it works off", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  await cluster.follow("ann", "bob");
  await cluster.publish("bob", { text: "hello" });
  await cluster.page("ann");
  await cluster.drained();
  const gateway = await Scrape.of(cluster.url, cluster.key);
  // A job leaves the queue before its worker counts it.
  const done = (scrape, lane) => scrape.value("feedgate_jobs_total", { lane, outcome: "done" });
  const worker = await until("the jobs are counted", async () => {
    const scrape = await Scrape.of(cluster.workers[0].url);
    return done(scrape, "posts") > 0 && done(scrape, "edges") > 0 && scrape;
  });
  assert.equal(gateway.value("feedgate_writes_total", { outcome: "accepted" }), 2);
  assert.equal(gateway.value("feedgate_archive_items"), 1);
  for (const store of ["archive", "inboxes", "jobs"]) assert.equal(gateway.value("feedgate_store_up", { store }), 1);
  assert.ok(gateway.value("feedgate_postgresql_calls_total", { call: "batch", outcome: "answered" }) >= 2);
  assert.ok(gateway.value("feedgate_postgresql_call_seconds_sum", { call: "batch" }) > 0);
  assert.equal(gateway.value("feedgate_redis_calls_total", { call: "begin", outcome: "answered" }), 1, "ann's inbox is built once");
  assert.ok(worker.value("feedgate_redis_calls_total", { call: "advance", outcome: "answered" }) > 0);
  const names = new Set(worker.metrics.map(([name]) => name));
  const both = gateway.metrics.filter(([name]) => names.has(name));
  assert.deepEqual(both.sort(), (await documented()).cluster, "each other number is told by one kind of process");
});

test("calls to a Redis that is away count as failed, and others go on to be answered", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  await cluster.follow("ann", "bob");
  await cluster.page("ann");
  const scrape = () => Scrape.of(cluster.url, cluster.key);
  const failed = ({ samples }) => samples.filter(([name, { outcome }]) => name === "feedgate_redis_calls_total" && outcome === "failed").reduce((sum, [, , value]) => sum + value, 0);
  assert.equal(failed(await scrape()), 0);
  await cluster.redis.kill();
  await until("failures are counted", async () => failed(await scrape()) > 0);
  const during = await scrape();
  assert.equal(during.value("feedgate_store_up", { store: "inboxes" }), 0);
  assert.equal(during.value("feedgate_postgresql_calls_total", { call: "read", outcome: "failed" }), 0);
  await cluster.redis.restart();
  await until("it is used again", async () => (await scrape()).value("feedgate_store_up", { store: "inboxes" }) === 1);
});
