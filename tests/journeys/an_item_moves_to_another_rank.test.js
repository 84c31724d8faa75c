import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const ids = (items) => items.map((item) => item.id);

/** Gives an item another rank; with `body` another body too. Answers the item as it is then. */
const rank = (server, { id }, to, body) => server.call("PATCH", `/v1/items/${id}`, { rank: to, ...body });

for (const author of ["pushed", "pulled", "everyone's", "direct"]) {
  test(`s11: an item of a ${author} author moves for who is live and for who was away`, async (t) => {
    const server = await Home.start(t);
    if (author === "pulled") await server.call("PUT", "/v1/authors/bob", { class: "pull" });
    if (author === "everyone's") await server.call("PUT", "/v1/authors/bob", { class: "everyone" });
    if (author === "pushed" || author === "pulled") await server.follow("ann", "bob");
    const to = author === "direct" ? { audience: { users: ["ann"] } } : {};
    const live = await Phone.open(t, server, "ann", { device: "live" });
    const away = await Phone.open(t, server, "ann", { device: "away" });
    await live.subscribed();
    await away.subscribed();
    const posts = [];
    for (const at of [1, 2, 3]) posts.push(await server.publish("bob", { at }, { rank: 10 * at, ...to }));
    const [low, middle, high] = posts;
    const order = (...wanted) => (items) => ids(items).join() === ids(wanted).join();
    await live.shows("three posts", order(high, middle, low));
    await away.shows("three posts", order(high, middle, low));
    await away.sleep();

    // Up, down, and back to where it was, with another body.
    assert.equal((await rank(server, low, 40)).version, 2);
    await live.shows("the lowest on top", order(low, high, middle));
    await rank(server, high, 5);
    await live.shows("the highest below", order(low, middle, high));
    assert.deepEqual((await rank(server, low, 10, { body: { at: "home" } })).body, { at: "home" });
    await live.shows("it at its place of before", order(middle, low, high));
    await server.call("PATCH", `/v1/items/${high.id}`, { body: { at: "edited" } });
    await server.call("DELETE", `/v1/items/${middle.id}`);
    await live.shows("an edit and a delete after moves", order(low, high));

    await away.wake();
    await away.agrees();
    await live.agrees();
    assert.deepEqual(away.feed.items(), live.feed.items(), "who was away ends as who was live");
    assert.deepEqual(live.feed.items().map((item) => [item.rank, item.version]), [[10, 3], [5, 3]]);
    assert.equal(away.reloads, 1, "it went on from its position");
    const moves = live.ops.filter((op) => op !== "update");
    assert.deepEqual(moves, ["add", "add", "add", ...Array(3).fill(["delete", "add"]).flat(), "delete"]);
  });
}

test("s11: pages go on without a gap and without a repeat while items move", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const posts = [];
  for (let at = 0; at < 9; at++) posts.push(await server.publish("bob", { at }, { rank: 10 * at }));
  await server.drained();
  const page = (cursor = "") => server.call("GET", `/v1/users/ann/feed?limit=3${cursor}`);
  const first = await page();
  assert.deepEqual(ids(first.items), ids([posts[8], posts[7], posts[6]]));
  // One above the cursor moves further up, one below it moves within what is still to come.
  await rank(server, posts[7], 95);
  await rank(server, posts[5], 15);
  await server.drained();
  const second = await page(`&cursor=${first.next}`);
  const third = await page(`&cursor=${second.next}`);
  assert.deepEqual(ids(second.items), ids([posts[4], posts[3], posts[2]]));
  assert.deepEqual(ids(third.items), ids([posts[5], posts[1], posts[0]]));
  assert.equal(third.next, null);
  const again = await page();
  assert.deepEqual(again.items.map((item) => item.rank), [95, 80, 60]);
});

test("s11: a repost shows its original with the rank it has now, and stays where it is", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "eve");
  const original = await server.publish("bob", { text: "news" }, { rank: 7 });
  const repost = await server.publish("eve", { text: "look" }, { ref: original.id, rank: 9 });
  await server.drained();
  await rank(server, original, 100);
  const { items } = await server.call("GET", "/v1/users/ann/feed?viewer=ann");
  assert.deepEqual(items.map((item) => [item.id, item.rank, item.ref_item.rank]), [[repost.id, 9, 100]]);
});
