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

const LOCKED_SECS = 8;

/** All callers give up so long after the lock was seen, while it is held. */
const PATIENCE_MS = 7000;

/** Between two posts, so that some are under way all the time. */
const BETWEEN_MS = 200;

/** A group of writes gives up after so long. */
const GROUP_SECS = 5;

/** On a busy machine it may happen that no group of writes gets through. Then the table is locked again. */
const TRIES = 3;

test("i4_posts_that_are_committed_after_their_callers_have_gone_are_relayed_at_once", async (t) => {
  const cluster = await Cluster.start(t);
  const authors = Array.from({ length: 30 }, (_, i) => `author-${i}`);
  for (const author of authors) {
    await cluster.follow("rea", author);
    await cluster.publish(author, { text: "first" });
  }
  const phone = await Phone.open(t, cluster, "rea");
  await phone.shows("what was before", (items) => items.length === authors.length);
  const stored = async () => Number(await cluster.postgres.psql(cluster.database, "select count(*) from items"));
  const late = async () => (await stored()) - authors.length;
  let [since, found] = [0, false];
  for (let n = 0; n < TRIES && !found; n += 1) {
    since = await lockAndPost(cluster, authors);
    found = await until("posts are committed", async () => (await late()) > 0, { withinSecs: GROUP_SECS }).catch(() => false);
  }
  assert.ok(found, `nothing was committed without its caller, ${TRIES} times`);
  await phone.shows("all that was committed", async (items) => items.length === (await stored()));
  const secs = (performance.now() - since) / 1000;
  t.diagnostic(`${await late()} committed, the last was there after ${secs} s`);
  assert.ok(secs < LIMIT_SECS, `what was committed came after ${secs} s`);
});

/** Posts of all authors while their table is locked; gives the time at which the lock was gone. */
async function lockAndPost({ postgres, database, url, key }, authors) {
  const locked = postgres.psql(database, `do $$ begin lock table authors; perform pg_sleep(${LOCKED_SECS}); end $$`);
  const holds = "select count(*) from pg_locks where relation = 'authors'::regclass and mode = 'AccessExclusiveLock' and granted";
  await until("the table is locked", async () => (await postgres.psql(database, holds)) === "1");
  // Those of the last GROUP_SECS commit when the lock is gone: nobody is there to hear of it.
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const asked = [];
  for (const author of authors) {
    const body = JSON.stringify({ author, body: { text: "late" } });
    asked.push(fetch(`${url}/v1/items`, { method: "POST", body, headers, signal }).catch(() => {}));
    await sleep(BETWEEN_MS);
  }
  await Promise.all(asked);
  await locked;
  return performance.now();
}
