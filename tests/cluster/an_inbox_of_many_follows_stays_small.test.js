// Line 9 of the trial: a reader follows and leaves thousands of authors. Every step of an author reads the header of the
// inbox whole, so the header must not grow with each follow: beyond a bound the inbox is built anew, without its past.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { until } from "../actors/until.js";

const AUTHORS = 3000;
const BATCH = 1000;

/** What the header of an inbox may take: 1024 marks of 11 bytes each, and what stands beside them. */
const HEADER_BYTES = 1024 * 11 + 256;

test("the header of an inbox does not grow with every author who was followed and left", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  const change = async (op) => {
    for (let first = 0; first < AUTHORS; first += BATCH) {
      const ops = Array.from({ length: BATCH }, (_, i) => ({ op, user: "rea", author: `author-${first + i}` }));
      const { results } = await cluster.call("POST", "/v1/follows/batch", { ops });
      assert.ok(results.every(({ status }) => status === 200), JSON.stringify(results[0]));
      await cluster.drained();
    }
  };
  await cluster.follow("rea", "stays");
  await cluster.page("rea");
  await change("follow");
  await change("unfollow");
  await cluster.page("rea");

  const inboxes = (await cluster.redis.cli("--scan", "--pattern", "{b*}:*")).split("\n").filter((key) => key !== "");
  const size = async (key) => Number(await cluster.redis.cli("eval", "return #(redis.call('lindex', KEYS[1], 0) or '')", 1, key));
  const sizes = await Promise.all(inboxes.map(size));
  t.diagnostic(`headers of ${sizes} bytes`);
  assert.equal(sizes.length, 1, "rea has an inbox");
  assert.ok(Math.max(...sizes) <= HEADER_BYTES, `a header has ${Math.max(...sizes)} bytes`);
  await cluster.publish("stays", { text: "still there" });
  await until("the feed goes on", async () => (await cluster.feed("rea")).length === 1);
});
