import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Scrape } from "../actors/openmetrics.js";
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
  const of = (scrape) => new Set(scrape.families.map(({ name }) => name));
  assert.deepEqual([...of(gateway)].filter((name) => of(worker).has(name)), [], "each number is told by one kind of process");
});
