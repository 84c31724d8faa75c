import assert from "node:assert/strict";
import { test } from "node:test";

import { Bus } from "../actors/bus.js";
import { Cluster } from "../actors/cluster.js";
import { until } from "../actors/until.js";

const AUTHORS = ["ann", "bob.smith"];

test("no event is missing, and each author's are in order, after NATS and a worker were killed", async (t) => {
  const cluster = await Cluster.start(t);
  const bus = await Bus.open(t, cluster);
  const posts = async (from, to) => {
    for (let n = from; n <= to; n += 1) for (const author of AUTHORS) await cluster.publish(author, n, { foreign_id: `${author}/${n}` });
  };
  await cluster.follow("eve", "ann");
  await posts(1, 20);
  await cluster.nats.kill();
  await posts(21, 40);
  await cluster.workers[0].kill();
  await cluster.nats.restart();
  await posts(41, 60);
  await cluster.workers[0].start();
  await cluster.unfollow("eve", "ann");
  const refused = await cluster.request("DELETE", "/v1/items/404");
  assert.equal(refused.status, 404);

  const wanted = 60 * AUTHORS.length + 2;
  // An event may come twice, under one id.
  const different = async () => [...new Map((await bus.events()).map(({ subject, event }) => [event.id, { subject, event }])).values()];
  await until("every event is on FEED", async () => (await different()).length >= wanted, { seen: () => bus.kept() });
  const once = await different();
  assert.equal(once.length, wanted);
  for (const author of AUTHORS) {
    const own = once.filter(({ event }) => event.kind === "publish" && event.author === author);
    assert.deepEqual(own.map(({ event }) => event.foreign_id), Array.from({ length: 60 }, (_, i) => `${author}/${i + 1}`));
    assert.ok(own.every(({ subject, event }) => subject === `feed.event.publish.${author.replace(".", "%2E")}` && event.version === 1));
  }
  const edges = once.filter(({ event }) => event.reader === "eve").map(({ subject }) => subject);
  assert.deepEqual(edges, ["feed.event.follow.eve", "feed.event.unfollow.eve"]);

  const elsewhere = await cluster.request("GET", "/v1/events");
  assert.equal(elsewhere.status, 404);
  assert.match(elsewhere.body.detail, /stream FEED/);
});
