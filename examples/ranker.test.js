// The example recommender puts what others like into the feed of a reader, against the real server.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Home } from "../tests/actors/home.js";
import { Phone } from "../tests/actors/phone.js";
import { HALF_LIFE_MS, points, rank, ranking } from "./ranker/rank.js";

const script = fileURLToPath(new URL("ranker/ranker.mjs", import.meta.url));

const ranker = async (server, ...args) => {
  const env = { FEEDGATE_URL: server.url, FEEDGATE_KEY: server.key };
  return (await promisify(execFile)(process.execPath, [script, ...args], { env })).stdout;
};

test("a rank orders as the score that decays, at any time", () => {
  const items = [[0, 0], [1, 3], [2, 1], [5, 40], [7, 0], [9, 2]].map(([hours, likes]) => ({
    published_at: 1_800_000_000_000 + hours * 3600_000,
    counts: { like: likes, comments: likes % 2 },
  }));
  for (const now of [1_800_040_000_000, 1_800_900_000_000]) {
    const score = (item) => (1 + points(item)) * 2 ** ((item.published_at - now) / HALF_LIFE_MS);
    for (const a of items) for (const b of items) assert.equal(rank(a) > rank(b), score(a) > score(b));
  }
  assert.equal(points({}), 0);
  assert.equal(ranking(items, 2).length, 2);
});

test("the example recommender ranks what others like, and devices get the difference", async (t) => {
  const server = await Home.start(t, { config: "[feeds.picks]\nranked = true\n" });
  const posts = [];
  for (const author of ["ann", "cid", "ann"]) posts.push(await server.publish(author, { n: posts.length }));
  await server.publish("bob", { text: "one's own" });
  const phone = await Phone.open(t, server, "bob", { channel: "picks" });
  await phone.subscribed();
  const args = ["--authors", "ann,cid,bob", "--readers", "bob"];
  assert.equal(await ranker(server, ...args), "bob: 3 added, 0 moved, 0 removed\n");
  const shows = (...wanted) => phone.shows(`${wanted}`, (items) => items.map(({ body }) => body.n).join() === wanted.join());
  await shows(2, 1, 0);
  for (const user of ["u1", "u2"]) await server.call("PUT", `/v1/items/${posts[0].id}/reactions/like/${user}`);
  assert.equal(await ranker(server, ...args), "bob: 0 added, 1 moved, 0 removed\n");
  await shows(0, 2, 1);
  assert.equal(await ranker(server, ...args), "bob: 0 added, 0 moved, 0 removed\n", "time alone moves nothing");
  await server.call("DELETE", `/v1/items/${posts[2].id}`);
  await shows(0, 1);
  await assert.rejects(ranker(server, ...args, "--feed", "pikcs"), /no feed named "pikcs"/);
  await assert.rejects(ranker(server, "--authors", "ann"), /give --authors and --readers/);
});
