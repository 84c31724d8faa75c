// This journey tells the article of quericy on the news of friends in a community, over Redis. A follow shows the
// newest posts from before it, an unfollow takes them away, and a second follow does what the first did. 300 posts
// are kept. Follows of one pair that wait in the queue are merged: the last one holds. Comments and replies are news
// too. Posts of one second are told apart by milliseconds.
//
// The design of the article has two faults: a post is written into the feeds of followers before it is in the
// author's outbox, so a follow in between loses it; and posts and follows have a queue each, so a late post comes
// after the unfollow and stays.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const KEPT = 300;
const CONFIG = `backfill = ${KEPT}\n[feeds.friends]\nkinds = ["post", "comment", "reply"]\ncap = ${KEPT}\n`;
const FEED = "friends";

const ids = (items) => items.map(({ id }) => id);
const authors = (items) => [...new Set(items.map(({ author }) => author))].sort();

/** Something new of a friend. */
const post = (server, author, kind = "post", more = {}) => server.publish(author, { text: `${kind} of ${author}` }, { kind, ...more });

/** A phone of ann, which shows the news of her friends. */
const open = (t, server, options) => Phone.open(t, server, "ann", { channel: FEED, ...options });

/** What a phone shows: the newest 300, as the settings have it. */
const shown = (phone) => ids(phone.feed.items().slice(0, KEPT));

test("a follow shows what was posted before it, an unfollow takes it away, and a second follow is as the first", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  const at = Date.now() - 1000;
  const before = [];
  // All of one millisecond, so the ids alone say which is newer.
  for (const kind of ["post", "comment", "reply"]) before.unshift((await post(server, "bob", kind, { published_at: at })).id);
  await server.follow("ann", "cyd");
  const { id: kept } = await post(server, "cyd", "post", { published_at: at - 1 });
  const live = await open(t, server, { device: "live" });
  const away = await open(t, server, { device: "away" });
  const shows = (phone, what, wanted) => phone.shows(what, (items) => ids(items).join() === wanted.join());
  await shows(live, "cyd alone", [kept]);
  await shows(away, "cyd alone", [kept]);

  await server.follow("ann", "bob");
  await shows(live, "what bob has posted before", [...before, kept]);
  await shows(away, "the same", [...before, kept]);
  await away.sleep();
  const { id: later } = await post(server, "bob");
  await shows(live, "what bob posts", [later, ...before, kept]);
  await server.unfollow("ann", "bob");
  await shows(live, "cyd alone", [kept]);
  const { id: meanwhile } = await post(server, "bob");
  await server.call("DELETE", `/v1/items/${before[1]}`);
  await server.follow("ann", "bob");
  const back = [meanwhile, later, before[0], before[2], kept];
  await shows(live, "all that bob has, also from when he was not followed", back);
  await away.wake();
  await shows(away, "the same", back);
  assert.deepEqual([live.reloads, away.reloads], [1, 1], "all of it by the log");
  for (const phone of [live, away]) await phone.agrees();
});

test("the newest 300 of all friends are kept, and who leaves makes room for what is older", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  const at = Date.now() - 1_000_000;
  const ops = ["bob", "cyd"].flatMap((author, n) =>
    Array.from({ length: 200 }, (_, i) => ({ author, kind: "post", body: { i }, published_at: at + 2 * i + n })));
  const { results } = await server.call("POST", "/v1/items/batch", { ops });
  const posts = results.map(({ id }, n) => ({ id, author: ops[n].author, at: ops[n].published_at })).sort((a, b) => b.at - a.at);
  for (const author of ["bob", "cyd"]) await server.follow("ann", author);
  await server.drained();
  const feed = async () => ids(await server.feed("ann", FEED));
  const newest = (from) => ids(from.slice(0, KEPT));
  assert.deepEqual(await feed(), newest(posts));
  const phone = await open(t, server);
  await phone.subscribed();
  await phone.loadAll();
  assert.deepEqual(shown(phone), newest(posts));

  for (let n = 0; n < 5; n += 1) posts.unshift({ author: "bob", ...(await post(server, "bob", "reply")) });
  await phone.shows("five more", () => shown(phone).join() === newest(posts).join());
  await server.drained();
  assert.deepEqual(await feed(), newest(posts), "the oldest five have gone");

  await server.unfollow("ann", "cyd");
  const ofBob = posts.filter(({ author }) => author === "bob");
  await server.drained();
  assert.deepEqual(await feed(), ids(ofBob), "205 of bob: those below the newest 300 have come up");
  await server.follow("ann", "cyd");
  await server.drained();
  assert.deepEqual(await feed(), newest(posts));
  const again = await open(t, server);
  await again.subscribed();
  await again.loadAll();
  assert.deepEqual(shown(again), newest(posts));
});

test("of many follows and unfollows of one pair the last holds, whatever is posted in between", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  const friends = Array.from({ length: 8 }, (_, n) => `friend-${n}`);
  for (const author of friends) await post(server, author);
  const phone = await open(t, server);
  await phone.subscribed();

  // Each friend is followed and left in a row of his own, while he posts. Every other one is left at last.
  const row = async (author, n) => {
    const posting = (async () => {
      for (let i = 0; i < 6; i += 1) await post(server, author);
    })();
    for (let i = 0; i < 6 + (n % 2); i += 1) await (i % 2 === 0 ? server.follow : server.unfollow).call(server, "ann", author);
    await posting;
  };
  await Promise.all(friends.map(row));
  await server.drained();
  const stay = friends.filter((_, n) => n % 2 === 1);
  const { users } = await server.call("GET", "/v1/users/ann/following");
  assert.deepEqual(users.map(({ user }) => user).sort(), stay);
  const feed = await server.feed("ann", FEED);
  assert.deepEqual(authors(feed), stay, "nothing is left of who was left");
  for (const author of stay) {
    const { items } = await server.call("GET", `/v1/users/${author}/outbox?name=${FEED}&limit=100`);
    assert.equal(items.length, 7);
    assert.deepEqual(ids(feed.filter((item) => item.author === author)), ids(items), "and nothing is missing of who was followed");
  }
  await phone.agrees();
});
