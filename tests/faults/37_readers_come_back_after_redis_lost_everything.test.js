// Fault 37: FLUSHALL while nobody is online, then readers come back, at once and while authors go on posting. Whatever was
// accepted and finished before is on the first page they get; until there is such a page the answer is 503.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";
import { Patient } from "./patient.js";

const AUTHORS = 8;
/** In each round, by each author: what all of them have posted fits on one page, with what others post to everybody. */
const POSTS = 6;
const READERS = 12;

/** Makes `n` names, each of `what` and a number. */
const names = (what, n) => Array.from({ length: n }, (_, i) => `${what}-${i}`);

judged("i8_pages_are_whole_after_redis_lost_everything_with_nobody_online", { start: cluster(), decides: ["I8"] }, async ({ load, fault, home, random, recorder }) => {
  const backend = new Patient(home, random.branch(), recorder);
  const [authors, readers] = [names("quiet", AUTHORS), names("returns", READERS)];
  for (const reader of readers) await Promise.all(authors.map((author) => backend.follow(reader, author)));
  const post = async (author) => (await backend.call("POST", "/v1/items", { author, body: { text: author } })).id;
  for (let round = 1; round <= 3; round += 1) {
    const posted = [];
    for (let i = 0; i < POSTS; i += 1) posted.push(...(await Promise.all(authors.map(post))));
    await backend.drained();
    await fault("flushall", "redis", () => home.redis.cli("flushall"));
    const [pages] = await Promise.all([
      Promise.all(readers.map((reader) => backend.call("GET", `/v1/users/${reader}/feed?limit=100`))),
      load.flows(20),
    ]);
    for (const [i, { items }] of pages.entries()) {
      const shown = new Set(items.map(({ id }) => id));
      const missing = posted.filter((id) => !shown.has(id));
      assert.deepEqual(missing, [], `round ${round}: of ${posted.length} finished items ${readers[i]} is shown ${items.length}`);
    }
  }
});

test("i4_fan_out_that_a_rebuild_reopens_in_a_cluster_is_done_at_once_and_waits_for_no_sweep", async (t) => {
  const home = await Cluster.start(t, { config: "[timeline]\nsweep_every_ms = 3600000\n" });
  const authors = names("ann", AUTHORS);
  for (const author of authors) await home.follow("bob", author);
  await Promise.all(authors.map((author) => home.publish(author, { text: author })));
  await home.drained();
  await home.redis.cli("flushall");
  assert.equal((await home.page("bob")).items.length, AUTHORS);
  await home.drained();
});
