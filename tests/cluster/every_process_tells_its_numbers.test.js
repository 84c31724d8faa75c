import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Scrape } from "../actors/openmetrics.js";
import { until } from "../actors/until.js";

const DOCUMENT = new URL("../../docs/metrics.md", import.meta.url);

/** What every process of a cluster counts of its calls, as docs/metrics.md has it: [name, type, labels]. */
const CALLS = ["postgresql", "redis"].flatMap((server) => [
  [`feedgate_${server}_call_seconds`, "histogram", "call"],
  [`feedgate_${server}_calls_total`, "counter", "call, outcome"],
]);

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
  const of = (scrape) => new Set(scrape.metrics.map(([name]) => name));
  const both = [...of(gateway)].filter((name) => of(worker).has(name));
  assert.deepEqual(both.sort(), CALLS.map(([name]) => name), "each other number is told by one kind of process");
  const told = (await readFile(DOCUMENT, "utf8")).split("\n").filter((line) => CALLS.some(([name]) => line.startsWith(`| \`${name}\``)));
  assert.deepEqual(told.map((row) => row.split("|").slice(1, 4).map((cell) => cell.replaceAll("`", "").trim())).sort(), CALLS);
  for (const scrape of [gateway, worker]) assert.deepEqual(scrape.metrics.filter(([name]) => both.includes(name)).sort(), CALLS);
});

test("calls to a Redis that is away count as failed, and others go on to be answered", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  await cluster.follow("ann", "bob");
  await cluster.page("ann");
  const scrape = () => Scrape.of(cluster.url, cluster.key);
  const failed = (numbers) => numbers.samples.filter(([name, labels]) => name === "feedgate_redis_calls_total" && labels.outcome === "failed").reduce((sum, [, , value]) => sum + value, 0);
  const before = await scrape();
  assert.equal(failed(before), 0);
  await cluster.redis.kill();
  await until("failures are counted", async () => failed(await scrape()) > 0);
  const during = await scrape();
  assert.equal(during.value("feedgate_store_up", { store: "inboxes" }), 0);
  assert.equal(during.value("feedgate_postgresql_calls_total", { call: "read", outcome: "failed" }), 0);
  await cluster.redis.restart();
  await until("it is used again", async () => (await scrape()).value("feedgate_store_up", { store: "inboxes" }) === 1);
});
