import assert from "node:assert/strict";
import test from "node:test";
import { Feed, FeedGap, newestFirst } from "./feed.js";

const item = (id, rank = Number(id), author = "ann", version = 1) => ({ id: `${id}`, author, rank, version, body: {} });
const add = (...args) => ({ op: "add", item: item(...args) });
const page = (ids, offset = 0, next = null, epoch = "1") => ({
  items: ids.map((id) => item(id)),
  next,
  position: { epoch, offset },
});
const shown = (feed) => feed.items().map(({ id }) => id);
const from = (first) => {
  const feed = new Feed();
  feed.reset(first);
  return feed;
};

test("items stand by rank, ties by id as a 64-bit number", () => {
  const feed = from(page([]));
  const ids = ["9", "10", "18446744073709551615", "18446744073709551614"];
  ids.forEach((id, i) => feed.apply(add(id, 5), { offset: i + 1 }));
  feed.apply(add("1", 6), { offset: 5 });
  assert.deepEqual(shown(feed), ["1", "18446744073709551615", "18446744073709551614", "10", "9"]);
  assert.equal(newestFirst(item(3), item(3)), 0);
});

test("the four changes do what they say, and the position follows", () => {
  const feed = from(page([2, 1], 7));
  feed.apply(add(3, 3, "bob"), { offset: 8, epoch: "1" });
  feed.apply({ op: "update", item: { ...item(2), version: 2, body: "new" } }, { offset: 9 });
  assert.equal(feed.items()[1].body, "new");
  feed.apply({ op: "delete", item_id: "1" }, { offset: 10 });
  assert.deepEqual(shown(feed), ["3", "2"]);
  feed.apply({ op: "forget", author: "ann" }, { offset: 11 });
  assert.deepEqual(shown(feed), ["3"]);
  assert.deepEqual(feed.position, { epoch: "1", offset: 11 });
});

test("what is addressed to the reader stays when its author is forgotten, and goes when it is deleted", () => {
  const feed = from(page([1]));
  feed.apply({ op: "add", item: { ...item(2), direct: true } }, { offset: 1 });
  feed.apply({ op: "forget", author: "ann" }, { offset: 2 });
  assert.deepEqual(shown(feed), ["2"]);
  feed.apply({ op: "delete", item_id: "2" }, { offset: 3 });
  assert.deepEqual(shown(feed), []);
});

test("update and delete of an item that is not held change nothing but the position", () => {
  const feed = from(page([1]));
  feed.apply({ op: "update", item: item(9) }, { offset: 1 });
  feed.apply({ op: "delete", item_id: "8" }, { offset: 2 });
  assert.deepEqual(shown(feed), ["1"]);
  assert.equal(feed.position.offset, 2);
});

test("a change taken in twice is known the second time", () => {
  const feed = from(page([1], 4));
  assert.equal(feed.apply(add(2), { offset: 5 }), true);
  feed.apply({ op: "delete", item_id: "2" }, { offset: 6 });
  assert.equal(feed.apply(add(2), { offset: 5 }), false);
  assert.deepEqual(shown(feed), ["1"]);
});

test("a gap, another epoch and an unknown op throw and change nothing", () => {
  const feed = from(page([1], 4));
  const before = JSON.stringify(feed);
  assert.throws(() => feed.apply(add(2), { offset: 6 }), FeedGap);
  assert.throws(() => feed.apply(add(2), { offset: 5, epoch: "2" }), FeedGap);
  assert.throws(() => feed.apply({ op: "explode" }, { offset: 5 }), TypeError);
  assert.equal(JSON.stringify(feed), before);
});

test("a behind publication changes nothing, wherever its offset jumps", () => {
  const feed = from(page([1], 4));
  assert.equal(feed.apply({ op: "behind" }, { offset: 16 }), false);
  assert.deepEqual(feed.position, { epoch: "1", offset: 4 });
});

test("changes that come while page one loads are taken in after it", () => {
  const feed = new Feed();
  feed.apply(add(2), { offset: 5 });
  feed.apply(add(3), { offset: 6 });
  feed.apply(add(4), { offset: 6, epoch: "0" });
  feed.reset(page([2, 1], 5));
  assert.deepEqual(shown(feed), ["3", "2", "1"]);
  assert.equal(feed.position.offset, 6);
});

test("a lost position keeps the list until page one is there", () => {
  const feed = from(page([1], 4));
  feed.lost();
  assert.equal(feed.position, null);
  assert.deepEqual(shown(feed), ["1"]);
  feed.apply(add(7), { offset: 1, epoch: "2" });
  feed.reset(page([6], 0, null, "2"));
  assert.deepEqual(shown(feed), ["7", "6"]);
});

test("more changes than it holds while loading show as a gap, not as a hole", () => {
  const feed = new Feed();
  for (let offset = 1; offset <= Feed.HELD_MAX + 1; offset++) feed.apply(add(offset), { offset });
  assert.throws(() => feed.reset(page([], 0)), FeedGap);
});

test("an item below the loaded stretch waits for its page", () => {
  const feed = from(page([9, 8], 0, "c1"));
  feed.apply(add(3), { offset: 1 });
  feed.apply(add(10), { offset: 2 });
  assert.deepEqual(shown(feed), ["10", "9", "8"]);
  assert.equal(feed.append(page([7, 3], 2)), true);
  assert.deepEqual(shown(feed), ["10", "9", "8", "7", "3"]);
  assert.equal(feed.next, null);
  feed.apply(add(1), { offset: 3 });
  assert.equal(shown(feed).at(-1), "1");
});

test("an older page from before an unfollow, or of another epoch, is refused", () => {
  const feed = from(page([9, 8], 4, "c1"));
  feed.apply({ op: "forget", author: "bob" }, { offset: 5 });
  assert.equal(feed.append({ ...page([7], 4), items: [item(7, 7, "bob")] }), false);
  assert.equal(feed.append(page([7], 9, null, "2")), false);
  assert.equal(feed.append(page([7], 5)), true);
  feed.lost();
  assert.equal(feed.append(page([6], 5)), false);
});

test("a page's later version is not undone by an earlier change after it", () => {
  const feed = new Feed();
  feed.reset({ ...page([], 4), items: [{ ...item(1), version: 3, body: "v3" }] });
  feed.apply({ op: "update", item: { ...item(1), version: 2, body: "v2" } }, { offset: 5 });
  assert.equal(feed.items()[0].body, "v3");
});

test("a feed comes back from its JSON as it was", () => {
  const feed = from(page([9, 8], 4, "c1"));
  feed.apply(add(10), { offset: 5 });
  const again = Feed.from(JSON.parse(JSON.stringify(feed)));
  assert.equal(JSON.stringify(again), JSON.stringify(feed));
  again.apply(add(3), { offset: 6 });
  assert.deepEqual(shown(again), ["10", "9", "8"]);
});

test("what items() answers is the caller's own", () => {
  const feed = from(page([1]));
  feed.items().pop();
  assert.deepEqual(shown(feed), ["1"]);
});

test("a page one that was read before changes the list holds already changes nothing", () => {
  const feed = from(page([1], 5));
  feed.apply(add(2), { offset: 6 });
  assert.equal(feed.reset(page([1], 5)), false, "a pull-down, and the change overtook its answer");
  assert.deepEqual([shown(feed), feed.position.offset], [["2", "1"], 6]);
  assert.equal(feed.reset(page([2, 1], 6)), true);
  assert.equal(feed.reset(page([9], 1, null, "2")), true, "another epoch is another log");
  feed.lost();
  assert.equal(feed.reset(page([8], 0, null, "2")), true, "and what is lost takes any page");
});
