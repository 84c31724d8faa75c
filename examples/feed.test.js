// The reducer of feed.js takes the steps of feed-vectors.json, and keeps what only JavaScript could break.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Feed, FeedGap, newestFirst } from "./feed.js";

const item = (id) => ({ id: `${id}`, author: "ann", rank: id, version: 1, body: {} });
const page = (ids, offset = 0) => ({ items: ids.map(item), next: null, position: { epoch: "1", offset } });
const shown = (feed) => feed.items().map(({ id }) => id);

/** Takes one step of a vector: answers the feed from then on and what the step answered. */
function take(feed, limits, step) {
  if (step.restart) return [Feed.from(JSON.parse(JSON.stringify(feed)), limits)];
  if (step.lost) return [feed, feed.lost()];
  try {
    if (step.reset) return [feed, feed.reset(step.reset)];
    if (step.append) return [feed, feed.append(step.append, step.cursor)];
    return [feed, feed.apply(step.apply, step.at)];
  } catch (error) {
    if (error instanceof FeedGap) return [feed, "gap"];
    if (error instanceof TypeError) return [feed, "unknown op"];
    throw error;
  }
}

for (const { name, limits, steps } of JSON.parse(readFileSync(new URL("feed-vectors.json", import.meta.url)))) {
  test(name, () => {
    let feed = new Feed(limits);
    for (const step of steps) {
      const [after, answers] = take(feed, limits, step);
      feed = after;
      const items = feed.items(step.now);
      const seen = {
        answers,
        position: feed.position,
        next: feed.next,
        items,
        shows: items.map(({ id }) => id),
        bodies: items.map(({ body }) => body),
        around: items.map(({ counts, own, ref_item, ref_gone }) => ({ ...(counts && { counts }), ...(own && { own }), ...(ref_item && { ref_item }), ...(ref_gone && { ref_gone }) })),
        people: feed.toJSON().people,
      };
      for (const [what, wanted] of Object.entries(step)) if (what in seen) assert.deepEqual(seen[what], wanted, `${what} after ${JSON.stringify(step)}`);
    }
  });
}

test("more changes than it holds while loading show as a gap, not as a hole", () => {
  const feed = new Feed();
  for (let offset = 1; offset <= Feed.HELD_MAX + 1; offset++) feed.apply({ op: "add", item: item(offset) }, { offset });
  assert.throws(() => feed.reset(page([])), FeedGap);
});

test("s7: a person is who the last page said, and nothing else that an object has", () => {
  const feed = new Feed();
  feed.reset({ ...page([3]), people: { ann: { name: "Ann" } } });
  assert.deepEqual([feed.person("ann"), feed.person("eve"), feed.person("constructor")], [{ name: "Ann" }, undefined, undefined]);
});

test("what items() answers is the caller's own", () => {
  const feed = new Feed();
  feed.reset(page([1]));
  feed.items().pop();
  assert.deepEqual(shown(feed), ["1"]);
});

test("an item is as new as itself", () => assert.equal(newestFirst(item(3), item(3)), 0));
