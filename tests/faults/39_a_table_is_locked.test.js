// Fault 39: the authors' table of PostgreSQL is locked for some seconds, and posts are committed after their callers
// have gone. Each that was committed is relayed at once, with the timings that are shipped.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

/** Far less than the 30 s after which the sweep relays. */
const LIMIT_SECS = 15;

/** A caller waits so long, a group of writes 5 s. */
const PATIENCE_MS = 6500;

const LOCKED_SECS = 8;

test("i4_posts_that_are_committed_after_their_callers_have_gone_are_relayed_at_once", async (t) => {
  const cluster = await Cluster.start(t);
  const authors = Array.from({ length: 12 }, (_, i) => `author-${i}`);
  for (const author of authors) {
    await cluster.follow("rea", author);
    await cluster.publish(author, { text: "first" });
  }
  const phone = await Phone.open(t, cluster, "rea");
  await phone.shows("what was before", (items) => items.length === authors.length);
  const locked = cluster.postgres.psql(cluster.database, `do $$ begin lock table authors; perform pg_sleep(${LOCKED_SECS}); end $$`);
  const holds = "select count(*) from pg_locks where relation = 'authors'::regclass and mode = 'AccessExclusiveLock' and granted";
  await until("the table is locked", async () => (await cluster.postgres.psql(cluster.database, holds)) === "1");
  // One after the other, so that those behind the first are begun when these have given up, and commit when the lock is
  // gone: nobody is there to hear of it.
  const asked = [];
  for (const author of authors) {
    const body = JSON.stringify({ author, body: { text: "late" } });
    const headers = { authorization: `Bearer ${cluster.key}`, "content-type": "application/json" };
    asked.push(fetch(`${cluster.url}/v1/items`, { method: "POST", body, headers, signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => {}));
    await sleep(200);
  }
  await Promise.all(asked);
  await locked;
  const since = performance.now();
  const committed = async () => Number(await cluster.postgres.psql(cluster.database, "select count(*) from items")) - authors.length;
  await until("posts are committed without their callers", async () => (await committed()) > 0);
  await phone.shows("all that was committed", async (items) => items.length === authors.length + (await committed()));
  const secs = (performance.now() - since) / 1000;
  t.diagnostic(`${await committed()} committed, the last was there after ${secs} s`);
  assert.ok(secs < LIMIT_SECS, `what was committed came after ${secs} s`);
});
