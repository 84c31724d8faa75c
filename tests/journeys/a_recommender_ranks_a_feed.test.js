import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const PICKS = '[feeds.picks]\nranked = true\n[feeds.likes]\nkinds = ["like"]\n';

const ids = (items) => items.map((item) => item.id);
const path = (reader, feed = "picks") => `/v1/users/${reader}/feeds/${feed}/ranking`;

/** Puts a ranking: pairs of an item and its rank. Answers what it has changed. */
const rank = (server, reader, pairs) =>
  server.call("PUT", path(reader), pairs.map(([{ id }, rank]) => ({ id, rank })));

const order = (...wanted) => (items) => ids(items).join() === ids(wanted).join();

for (const name of ["push", "pull", "everyone"]) {
  test(`s11: a ranking of items of a ${name} author is told as a difference to who is live, and to who was away`, async (t) => {
    const server = await Home.start(t, { config: PICKS });
    await server.call("PUT", "/v1/authors/bob", { class: name });
    const posts = [];
    for (let at = 0; at < 5; at += 1) posts.push(await server.publish(at % 2 ? "bob" : "cid", { at }));
    const [a, b, c, d, e] = posts;
    const live = await Phone.open(t, server, "ann", { channel: "picks", device: "live", unread: true });
    const away = await Phone.open(t, server, "ann", { channel: "picks", device: "away" });
    await live.subscribed();
    await away.subscribed();
    assert.deepEqual(await rank(server, "ann", [[a, 10], [b, 30], [c, 20]]), { added: 3, moved: 0, removed: 0 });
    await live.shows("three picks", order(b, c, a));
    await away.shows("three picks", order(b, c, a));
    await away.sleep();

    assert.deepEqual(await rank(server, "ann", [[b, 30], [a, 40], [d, 35]]), { added: 1, moved: 1, removed: 1 });
    await live.shows("one that is new, one that has moved, one less", order(a, d, b));
    assert.deepEqual(live.ops, ["add", "add", "add", "delete", "add", "add", "delete"], "no more than the difference");
    assert.deepEqual(await rank(server, "ann", [[a, 40], [d, 35], [b, 30]]), { added: 0, moved: 0, removed: 0 });
    await server.call("PATCH", `/v1/items/${d.id}`, { body: { at: "edited" } });
    await live.shows("the edit", ([, second]) => second.body.at === "edited");
    await server.call("DELETE", `/v1/items/${b.id}`);
    await live.shows("the end of an item", order(a, d));
    assert.deepEqual(await server.call("GET", path("ann")), [{ id: a.id, rank: 40 }, { id: d.id, rank: 35 }]);
    await rank(server, "ann", [[a, 40], [d, 35], [e, 1]]);
    await live.shows("one more at the end", order(a, d, e));

    // A follow and its end bring nothing and take nothing away.
    await server.follow("ann", "bob");
    await server.unfollow("ann", "bob");
    await away.wake();
    await away.agrees();
    await live.agrees();
    assert.deepEqual(away.feed.items(), live.feed.items(), "who was away ends as who was live");
    assert.deepEqual(live.feed.items().map((item) => [item.rank, item.direct]), [[40, true], [35, true], [1, true]]);
    assert.deepEqual([away.reloads, live.unread], [1, 0], "nothing was loaded again, and nothing is unread");
    assert.ok(!(await server.feed("ann", "feed")).some(({ id }) => [a.id, d.id, e.id].includes(id) && name !== "everyone"));

    await server.kill();
    await server.start();
    await rank(server, "ann", [[e, 50], [a, 40]]);
    await live.shows("what was ranked after the server was away", order(e, a));
    await live.agrees();
  });
}

test("s11: a ranking shows nothing that its reader may not see, and pages of it go on without a gap", async (t) => {
  const server = await Home.start(t, { config: PICKS });
  await server.follow("dan", "bob");
  await server.call("PUT", "/v1/users/bob/lists/close/dan");
  const open = await server.publish("bob", { text: "for all" });
  const narrowed = await server.publish("bob", { text: "for dan" }, { audience: { lists: ["close"] } });
  const letter = await server.publish("eve", { text: "to dan" }, { audience: { users: ["dan"] } });
  const others = [];
  for (let n = 0; n < 7; n += 1) others.push(await server.publish("cid", { n }));
  const all = [[open, 100], [narrowed, 90], [letter, 80], ...others.map((post, n) => [post, 10 * n])];
  for (const reader of ["ann", "dan"]) await rank(server, reader, all);
  await server.drained();
  const shown = async (reader, name = "picks") => ids(await server.feed(reader, name));
  const rest = ids(others).reverse();
  assert.deepEqual(await shown("ann"), [open.id, ...rest]);
  assert.deepEqual(await shown("dan"), [open.id, narrowed.id, letter.id, ...rest]);
  const pages = [];
  for (let cursor = ""; cursor !== null; ) {
    const page = await server.call("GET", `/v1/users/ann/feed?name=picks&limit=3${cursor && `&cursor=${cursor}`}`);
    pages.push(...ids(page.items));
    cursor = page.next;
  }
  assert.deepEqual(pages, [open.id, ...rest]);

  await server.call("PUT", "/v1/users/ann/blocked/cid");
  await server.call("PUT", "/v1/users/bob/hidden/dan");
  await server.drained();
  assert.deepEqual(await shown("ann"), [open.id], "a block hides, also where nobody follows");
  assert.deepEqual(await shown("dan"), [letter.id, ...rest], "and so does whoever hides");
  const { changes } = await server.call("GET", "/v1/users/ann/changes?name=picks");
  assert.deepEqual(changes.filter(({ op }) => op === "add").map(({ item }) => item.id), [open.id], "the log says the same");
  await server.call("DELETE", "/v1/users/ann/blocked/cid");
  await server.drained();
  assert.deepEqual(await shown("ann"), [open.id, ...rest]);
  assert.equal((await server.call("GET", path("ann"))).length, 10, "the recommender reads what it has put");
});

test("s11: an edit and a delete reach every ranking that holds the item", async (t) => {
  const server = await Home.start(t, { config: PICKS });
  const [hot, other] = [await server.publish("bob", { n: 1 }), await server.publish("bob", { n: 2 })];
  const readers = Array.from({ length: 40 }, (_, n) => `reader${n}`);
  for (const [n, reader] of readers.entries()) await rank(server, reader, [[hot, n], [other, -1]]);
  const phones = [];
  for (const reader of [readers[0], readers[39]]) phones.push(await Phone.open(t, server, reader, { channel: "picks" }));
  for (const phone of phones) await phone.subscribed();
  await server.call("PATCH", `/v1/items/${hot.id}`, { body: { n: "edited" } });
  for (const phone of phones) await phone.shows("the edit", ([first]) => first.body.n === "edited");
  await server.call("DELETE", `/v1/items/${hot.id}`);
  for (const phone of phones) await phone.shows("the other item alone", order(other));
  for (const reader of readers) assert.deepEqual(await server.call("GET", path(reader)), [{ id: other.id, rank: -1 }]);
  for (const phone of phones) await phone.agrees();
});

test("s11: a ranking of a thousand items is replaced, and a phone that was away has it", async (t) => {
  const server = await Home.start(t, { config: PICKS });
  const ops = Array.from({ length: 1000 }, (_, n) => ({ author: "bob", body: { n } }));
  const { results: items } = await server.call("POST", "/v1/items/batch", { ops });
  const ranks = (shift) => items.map((item, n) => [item, (n + shift) % 1000]);
  assert.deepEqual(await rank(server, "ann", ranks(0)), { added: 1000, moved: 0, removed: 0 });
  const phone = await Phone.open(t, server, "ann", { channel: "picks" });
  await phone.subscribed();
  await phone.agrees();
  await phone.sleep();
  assert.deepEqual(await rank(server, "ann", ranks(1)), { added: 0, moved: 1000, removed: 0 });
  assert.deepEqual(await rank(server, "ann", ranks(1).slice(0, 500)), { added: 0, moved: 0, removed: 500 });
  await server.drained();
  await phone.wake();
  await phone.agrees();
  assert.equal(phone.feed.items().length, 500);
});

test("s11: what is wrong with a ranking is said, with its place", async (t) => {
  const server = await Home.start(t, { config: PICKS });
  const post = await server.publish("bob", { text: "one" });
  await rank(server, "ann", [[post, 1]]);
  const many = Array.from({ length: 1001 }, (_, n) => ({ id: `${n + 1}`, rank: n }));
  for (const [feed, body, status, at, said] of [
    ["picks", [{ id: post.id, rank: 2 }, { id: "5", rank: 1 }], 422, "/1/id", /there is no item 5/],
    ["picks", [{ id: post.id, rank: 2 }, { id: post.id, rank: 3 }], 422, "/1/id", /stands at \/0 already/],
    ["picks", [{ id: post.id }], 422, "/0/rank", /is missing/],
    ["picks", [{ id: post.id, rank: 2 ** 53 }], 422, "/0/rank", /must be from/],
    ["picks", [{ id: post.id, rank: 1, score: 2 }], 422, "/0/score", /unknown field/],
    ["picks", { items: [] }, 422, "", /must be a list/],
    ["picks", many, 422, "", /at most 1000 items, this one has 1001/],
    ["likes", [], 400, "feed", /"likes" holds what is published for it.*feeds with ranked = true are "picks"/],
    ["feed", [], 400, "feed", /"feed" holds what is published for it/],
    ["pikcs", [], 400, "feed", /no feed named "pikcs"/],
  ]) {
    const answer = await server.request("PUT", path("ann", feed), body);
    assert.deepEqual([answer.status, answer.body.pointer ?? answer.body.field], [status, at], JSON.stringify(answer.body));
    assert.match(answer.body.detail, said);
  }
  assert.deepEqual(await server.call("GET", path("ann")), [{ id: post.id, rank: 1 }], "nothing has changed");
  assert.deepEqual(await server.call("GET", path("nobody")), []);
});
