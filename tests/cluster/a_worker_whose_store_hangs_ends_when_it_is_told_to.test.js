// A worker is told to end while its job waits for a lock of PostgreSQL: it does not wait until the call times out. The
// job is done by the next worker.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

/** A worker waits 3 s for its jobs and 1 s to give them back. A worker that tried again until it succeeds would never end. */
const LIMIT_SECS = 8;

test("a worker whose store hangs ends soon after SIGTERM, and what it had in hand is delivered by the next one", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  const [worker] = cluster.workers;
  const psql = (statement) => cluster.postgres.psql(cluster.database, statement);
  await cluster.follow("bob", "ann");
  const phone = await Phone.open(t, cluster, "bob");
  await cluster.publish("ann", { text: "before" });
  await phone.shows("the post from before", (items) => items.length === 1);
  await cluster.drained();

  const [edges, mine] = ["'edges'::regclass", "application_name = 'holds the edges'"];
  const locked = psql("set application_name = 'holds the edges'; do $$ begin lock table edges; perform pg_sleep(600); end $$").catch(() => {});
  const locks = (granted) => psql(`select count(*) from pg_locks where relation = ${edges} and ${granted ? "mode = 'AccessExclusiveLock' and" : "not"} granted`);
  await until("the edges are locked", async () => (await locks(true)) === "1");
  await cluster.publish("ann", { text: "meanwhile" });
  await until("the worker waits for the edges", async () => Number(await locks(false)) > 0);
  const since = performance.now();
  assert.deepEqual(await worker.stop(), { code: 0, signal: null });
  const secs = (performance.now() - since) / 1000;
  t.diagnostic(`it ended after ${secs.toFixed(1)} s`);
  assert.ok(secs < LIMIT_SECS, `it ended after ${secs} s`);

  await psql(`select pg_terminate_backend(pid) from pg_stat_activity where ${mine}`);
  await locked;
  await worker.start();
  await phone.shows("both posts", (items) => items.length === 2);
});
