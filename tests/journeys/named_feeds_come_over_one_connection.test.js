import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Centrifuge, Phone, WebSocket } from "../actors/phone.js";
import { until } from "../actors/until.js";

const NOTIFICATIONS = '[feeds.notifications]\nkinds = ["like", "comment"]\n';

/** Ann's phone with both feeds over one connection. */
async function bothFeeds(t, server, options) {
  const posts = await Phone.open(t, server, "ann", options);
  const likes = await Phone.open(t, server, "ann", { ...options, channel: "notifications", over: posts });
  await posts.subscribed();
  await likes.subscribed();
  return { posts, likes };
}

const texts = (phone) => phone.feed.items().map(({ body }) => body.text);
const count = (wanted) => (items) => items.length === wanted;

for (const name of ["push", "pull"]) {
  for (const deliver of ["items", "notify"]) {
    test(`what a ${name} author likes goes to the notifications alone, and each feed goes on from its own position (${deliver})`, async (t) => {
      const server = await Home.start(t, { config: NOTIFICATIONS });
      await server.call("PUT", "/v1/authors/bob", { class: name });
      await server.follow("ann", "bob");
      const { posts, likes } = await bothFeeds(t, server, { device: "ios-1", deliver });

      await server.publish("bob", { text: "a post" }, { kind: "post" });
      const { id } = await server.publish("bob", { text: "a like" }, { kind: "like" });
      await server.publish("bob", { text: "a comment" }, { kind: "comment" });
      await posts.shows("the post", count(1));
      await likes.shows("the like and the comment", count(2));
      assert.deepEqual([texts(posts), texts(likes)], [["a post"], ["a comment", "a like"]]);

      await server.call("PATCH", `/v1/items/${id}`, { body: { text: "a heart" } });
      await likes.shows("the edit", (items) => items.some(({ body }) => body.text === "a heart"));
      await server.call("DELETE", `/v1/items/${id}`);
      await likes.shows("the comment alone", count(1));

      await likes.acknowledge();
      await posts.sleep();
      for (let n = 1; n <= 7; n += 1) await server.publish("bob", { text: `like ${n}` }, { kind: "like" });
      for (let n = 1; n <= 3; n += 1) await server.publish("bob", { text: `post ${n}` });
      await server.drained();
      await posts.wake();
      await likes.shows("seven likes more", count(8));
      await posts.shows("three posts more", count(4));
      assert.deepEqual([posts.recovered, likes.recovered], [true, true]);

      await server.kill();
      await server.start();
      await server.publish("bob", { text: "after" }, { kind: "like" });
      await likes.shows("what came after the server was away", ([first]) => first.body.text === "after");
      await posts.agrees();
      await likes.agrees();

      await server.unfollow("ann", "bob");
      await posts.shows("nothing", count(0));
      await likes.shows("nothing", count(0));
      await posts.agrees();
      await likes.agrees();
      assert.deepEqual([posts.reloads, likes.reloads], [1, 1], "nothing was loaded again");
      assert.equal(posts.connects, likes.connects, "of one connection");
      const addsOf = (phone) => phone.ops.filter((op) => op === "add").length;
      assert.deepEqual([addsOf(posts), addsOf(likes)], [4, 10]);
    });
  }
}

for (const name of ["push", "pull"]) {
  test(`a phone that asks for the notifications alone hears of a ${name} author's, and of nothing else`, async (t) => {
    const server = await Home.start(t, { config: NOTIFICATIONS });
    await server.call("PUT", "/v1/authors/bob", { class: name });
    await server.follow("ann", "bob");
    const likes = await Phone.open(t, server, "ann", { channel: "notifications" });
    await likes.subscribed();
    await server.publishMany("bob", 20);
    await server.publish("bob", { text: "a like" }, { kind: "like" });
    await likes.shows("the like", count(1));
    await server.publish("bob", { text: "yours" }, { kind: "comment", audience: { users: ["ann"] } });
    await likes.shows("the comment", count(2));
    await likes.sleep();
    await server.publishMany("bob", 20);
    await server.publish("bob", { text: "another" }, { kind: "like" });
    await server.drained();
    await likes.wake();
    await likes.shows("what came meanwhile", count(3));
    assert.deepEqual([likes.pushes, likes.recovered, likes.reloads], [3, true, 1]);
    await likes.agrees();
    assert.equal((await server.feed("ann")).length, 40, "the main feed is there all the same");
  });
}

test("an item for named readers goes to the feed of its kind and stays there when its author leaves it", async (t) => {
  const server = await Home.start(t, { config: NOTIFICATIONS });
  await server.follow("ann", "bob");
  const { posts, likes } = await bothFeeds(t, server);
  const audience = { users: ["ann"] };
  const { id } = await server.publish("bob", { text: "bob likes your photo" }, { kind: "like", audience });
  await server.publish("bob", { text: "psst" }, { audience });
  await server.publish("bob", { text: "to all" }, { kind: "like" });
  await likes.shows("both likes", count(2));
  await posts.shows("the message", count(1));

  await server.unfollow("ann", "bob");
  await likes.shows("what is hers alone", count(1));
  assert.deepEqual([texts(posts), texts(likes)], [["psst"], ["bob likes your photo"]]);
  await server.call("DELETE", `/v1/items/${id}`);
  await likes.shows("nothing", count(0));
  await posts.agrees();
  await likes.agrees();
});

test("a thousand likes keep no post out of what a follow brings, nor out of the log", async (t) => {
  const server = await Home.start(t, { config: NOTIFICATIONS });
  await server.publishMany("bob", 3);
  const like = (n) => ({ author: "bob", kind: "like", body: { text: `like ${n}` } });
  const thousand = { ops: Array.from({ length: 1000 }, (_, n) => like(n)) };
  await server.call("POST", "/v1/items/batch", thousand);
  await server.drained();
  await server.follow("ann", "bob");
  await server.drained();
  const { posts, likes } = await bothFeeds(t, server);
  await posts.agrees();
  await likes.agrees();
  assert.deepEqual([posts.feed.items().length, likes.feed.items().length], [3, 100]);

  await posts.sleep();
  for (let n = 0; n < 2; n += 1) await server.call("POST", "/v1/items/batch", thousand);
  await server.publish("bob", { text: "after the likes" });
  await server.drained();
  await posts.wake();
  await posts.shows("the post", count(4));
  await likes.waitFor("the notifications are loaded again", () => likes.reloads === 2);
  // An SDK that asks the app for a position has page one before it subscribes, so nothing is missing then.
  const asked = likes.way === "getState";
  assert.deepEqual([posts.recovered, posts.reloads, likes.recovered], [true, 1, asked], "each by itself");
  await posts.agrees();
  await likes.agrees();
});

test("pages of a feed end behind its cap and leave out what is older than its time to live", async (t) => {
  const server = await Home.start(t, { config: `${NOTIFICATIONS}cap = 3\nttl_hours = 1\n` });
  await server.follow("ann", "bob");
  const early = await bothFeeds(t, server);
  const anHourAgo = Date.now() - 3_600_000;
  for (const kind of ["like", "post"]) {
    await server.publish("bob", { text: "old" }, { kind, published_at: anHourAgo - 1 });
    for (let n = 1; n <= 5; n += 1) await server.publish("bob", { text: `${kind} ${n}` }, { kind });
  }
  await early.likes.shows("each like as it came", count(5));
  await server.drained();
  assert.deepEqual(early.likes.ops, ["delete", "add", "add", "add", "add", "add"], "the old one was gone before it came");
  const { items, next } = await server.page("ann", { name: "notifications" });
  assert.deepEqual([items.map(({ body }) => body.text), next], [["like 5", "like 4", "like 3"], null]);
  assert.equal((await server.feed("ann")).length, 6, "the main feed has neither");

  const { posts, likes } = await bothFeeds(t, server);
  await posts.agrees();
  await likes.agrees();
  const rpc = await likes.client.rpc("page", { channel: "notifications", limit: 2 });
  assert.deepEqual(rpc.data.items.map(({ body }) => body.text), ["like 5", "like 4"]);
});

test("a device that stored nothing goes on in each feed from what it has acknowledged there", async (t) => {
  const server = await Home.start(t, { config: NOTIFICATIONS });
  await server.follow("ann", "bob");
  const before = await bothFeeds(t, server, { device: "tv" });
  for (let n = 1; n <= 3; n += 1) await server.publish("bob", { text: `like ${n}` }, { kind: "like" });
  await server.publish("bob", { text: "post 1" });
  await before.likes.shows("three likes", count(3));
  await before.posts.shows("a post", count(1));
  await before.likes.acknowledge();
  await before.posts.acknowledge();
  const stored = async () => (await server.call("GET", "/v1/users/ann/sessions")).sessions[0]?.position?.offset === 1;
  await until("the positions are stored", stored);
  before.posts.close();

  await server.publish("bob", { text: "like 4" }, { kind: "like" });
  await server.publish("bob", { text: "post 2" });
  await server.drained();
  const client = new Centrifuge(server.websocket, {
    websocket: WebSocket,
    data: { device_id: "tv" },
    token: await server.token("ann"),
  });
  t.after(() => client.disconnect());
  const told = { feed: [], notifications: [] };
  for (const [channel, seen] of Object.entries(told)) {
    const subscription = client.newSubscription(channel, { data: { deliver: "items", resume: "stored" } });
    subscription.on("subscribed", ({ recovered }) => seen.push(recovered));
    subscription.on("publication", ({ offset, data }) => seen.push([offset, data.item.body.text]));
    subscription.subscribe();
  }
  client.connect();
  const wanted = { feed: [true, [2, "post 2"]], notifications: [true, [4, "like 4"]] };
  await until("what is new in each", () => Object.values(told).every(({ length }) => length >= 2), { seen: () => told });
  assert.deepEqual(told, wanted);
});

test("a channel that is no feed is refused with those that are", async (t) => {
  const server = await Home.start(t, { config: NOTIFICATIONS });
  const { posts } = await bothFeeds(t, server);
  const other = posts.client.newSubscription("likes");
  const refused = new Promise((resolve) => other.on("unsubscribed", resolve));
  other.subscribe();
  const { code, reason } = await refused;
  assert.equal(code, 102);
  assert.match(reason, /unknown channel "likes"; known: "feed", "notifications"/);
  await posts.agrees();
});
