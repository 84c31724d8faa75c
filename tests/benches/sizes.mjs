// What users, edges, posts and inboxes take in the real engines of a cluster, and how many calls a post costs.
//
//     ./dev cluster             once, which brings and builds what this runs
//     node tests/benches/sizes.mjs
//
// Sizes of PostgreSQL are those of tables with their indexes after VACUUM FULL, so without room that is free in them: a
// database that is written to for long is larger. Those of Redis are its used_memory. The processes of Feedgate are debug
// builds, so nothing is said of time.

import { Cluster } from "../actors/cluster.js";
import { Scrape } from "../actors/openmetrics.js";

const READERS = 2000;
const AUTHORS = 500;
const FOLLOWS = 50; // of each reader
const POSTS = 2000;
const BODY_BYTES = 200;
const FEW = 12; // followers of the author whose posts are counted by calls

const cleanUps = [];
const cluster = await Cluster.start({ after: (work) => cleanUps.push(work) }, { gateways: 1, workers: 1 });
try {
  await main();
} finally {
  for (const work of cleanUps.reverse()) await work();
}

async function main() {
  const empty = await sizes({ filled: false });
  await follow(edges());
  const followed = await sizes();
  for (let n = 1; n <= READERS; n += 1) await cluster.page(`reader-${n}`, { limit: 1 });
  const built = await sizes();
  await publish(POSTS, (n) => `author-${1 + (n % AUTHORS)}`);
  const published = await sizes();

  const each = (after, before, engine, count) => ((after[engine] - before[engine]) / count).toFixed(0);
  const entries = published.entries - built.entries;
  console.log(`PostgreSQL: ${each(followed, empty, "postgres", READERS * FOLLOWS)} bytes for a follow, with its users`);
  console.log(`PostgreSQL: ${each(published, built, "postgres", POSTS)} bytes for a post with a body of ${BODY_BYTES} bytes`);
  console.log(`Redis: ${each(built, followed, "redis", READERS)} bytes for an empty inbox`);
  console.log(`Redis: ${each(published, built, "redis", entries)} bytes for an entry of an inbox, of ${(entries / READERS).toFixed(0)} each`);

  await follow(Array.from({ length: FEW }, (_, n) => ({ user: `reader-${n + 1}`, author: "few" })));
  for (const burst of [1, 100]) await count(burst);
}

function* edges() {
  for (let reader = 1; reader <= READERS; reader += 1) {
    for (let n = 0; n < FOLLOWS; n += 1) yield { user: `reader-${reader}`, author: `author-${1 + ((reader * 7 + n * 10) % AUTHORS)}` };
  }
}

/** Follows in batches, and waits until all work is done. */
async function follow(all) {
  const ops = [...all].map((edge) => ({ op: "follow", ...edge }));
  for (let done = 0; done < ops.length; done += 1000) await cluster.call("POST", "/v1/follows/batch", { ops: ops.slice(done, done + 1000) });
  await cluster.drained();
}

/** Publishes, and waits until all inboxes have it. */
async function publish(count, author) {
  const body = { text: "x".repeat(BODY_BYTES - '{"text":""}'.length) };
  const ops = Array.from({ length: count }, (_, n) => ({ author: author(n), body }));
  for (let done = 0; done < count; done += 500) await cluster.call("POST", "/v1/items/batch", { ops: ops.slice(done, done + 500) });
  await cluster.drained();
}

/** Prints the calls that a burst of posts of one author costs, over all processes. */
async function count(burst) {
  const before = await calls();
  await publish(burst, () => "few");
  const after = await calls();
  const grown = [...after].map(([call, value]) => [call, value - (before.get(call) ?? 0)]).filter(([, value]) => value > 0);
  console.log(`calls for ${burst} post${burst > 1 ? "s" : ""} to ${FEW} followers, with all that went on meanwhile:`);
  for (const [call, value] of grown.sort((a, b) => b[1] - a[1])) console.log(`  ${String(value).padStart(5)} ${call}`);
}

async function calls() {
  const sum = new Map();
  for (const scrape of [await Scrape.of(cluster.url, cluster.key), await Scrape.of(cluster.workers[0].url)]) {
    for (const [name, labels, value] of scrape.samples) {
      const server = /^feedgate_(postgresql|redis)_calls_total$/.exec(name)?.[1];
      if (server) sum.set(`${server} ${labels.call}`, (sum.get(`${server} ${labels.call}`) ?? 0) + value);
    }
  }
  return sum;
}

/** The bytes that the engines hold, and the entries of all inboxes. */
async function sizes({ filled = true } = {}) {
  const tables = "select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace";
  const database = new URL(cluster.urls.archive_url).pathname.slice(1);
  // Not of empty tables: PostgreSQL would plan for empty ones from then on, and the first batches would be too slow.
  if (filled) await cluster.postgres.psql(database, "vacuum full");
  const postgres = Number(await cluster.postgres.psql(database, tables));
  const redis = Number(/used_memory:(\d+)/.exec(await cluster.redis.cli("INFO", "memory"))[1]);
  const { inboxes } = await cluster.call("GET", "/v1/stats");
  return { postgres, redis, entries: inboxes.entries };
}
