import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const ALL = { config: 'backfill = "all"\n' };
const DAY = 24 * 3600 * 1000;
const NEWEST = 100; // what a follow step brings

const ids = (items) => items.map(({ id }) => id);

/** Publishes an item for each age in days, the oldest first; answers them, the newest first. */
async function publish(server, author, ages) {
  const now = Date.now();
  const ops = [...ages].sort((a, b) => b - a).map((age) => ({ author, body: { age }, rank: Math.round(now - age * DAY) }));
  const { results } = await server.call("POST", "/v1/items/batch", { ops });
  assert.ok(results.every(({ status }) => status === 201), JSON.stringify(results[0]));
  return results.map(({ id, item_id }) => id ?? item_id).reverse();
}

/** Ends all processes and starts them again with these settings. */
async function restart(server, config) {
  for (const member of server.members ?? [server]) {
    await member.stop();
    await member.configure(config);
    await member.start();
  }
}

/** Depths of days, of a month, of a year, and beyond: `count` items of each. */
const depths = (count, offset) => [1, 20, 200, 2000].flatMap((days) => Array.from({ length: count }, (_, i) => days + i / 100 + offset));

for (const name of ["push", "pull"]) {
  test(`s12: a ${name} author followed today shows from the first item, for who is live and for who was away`, async (t) => {
    const server = await Home.start(t, ALL);
    await server.call("PUT", "/v1/authors/old", { class: name });
    const old = await publish(server, "old", depths(60, 0));
    const own = await publish(server, "cyd", depths(10, 0.005));
    await server.follow("ann", "cyd");
    const live = await Phone.open(t, server, "ann", { device: "live" });
    const away = await Phone.open(t, server, "ann", { device: "away", deliver: "notify" });
    await live.subscribed();
    await live.shows("all of the other author", (items) => items.length === own.length);
    await away.subscribed();
    await away.agrees();
    await away.see();
    await away.sleep();
    assert.equal(live.feed.next, null, "it has loaded its feed to the end");

    await server.follow("ann", "old");
    await live.shows("the newest", (items) => ids(items).filter((id) => old.includes(id)).length >= NEWEST);
    const newest = ids(live.feed.items()).filter((id) => old.includes(id));
    assert.deepEqual(newest, old.slice(0, NEWEST), "the rest waits for its page");
    assert.notEqual(live.feed.next, null, "and the phone knows that there is more");
    await live.agrees();
    assert.equal(live.feed.items().length, old.length + own.length);
    assert.deepEqual(ids(live.feed.items()).filter((id) => old.includes(id)), old);
    assert.equal(live.reloads, 1, "nothing was loaded again");

    await away.wake();
    await away.agrees();
    assert.deepEqual(away.feed.items(), live.feed.items(), "who was away ends as who was live");
    assert.equal(away.reloads, 1, "it went on from its position");
    const { unread } = await server.call("GET", "/v1/users/ann/feed?limit=1");
    assert.equal(unread, NEWEST, "what a follow brings is new to the reader");

    // New, edited and deleted items, also such that only pages have.
    const { id: fresh } = await server.publish("old", { text: "now" });
    await server.call("DELETE", `/v1/items/${old.at(-1)}`);
    await server.call("PATCH", `/v1/items/${old.at(-2)}`, { body: { text: "edited" } });
    await live.shows("the new one", ([first]) => first.id === fresh);
    await live.agrees();
    assert.ok(!ids(live.feed.items()).includes(old.at(-1)));
    assert.deepEqual(live.feed.items().find(({ id }) => id === old.at(-2)).body, { text: "edited" });

    await server.unfollow("ann", "old");
    await live.shows("the other author alone", (items) => items.every(({ author }) => author === "cyd"));
    await live.agrees();
    assert.deepEqual(ids(live.feed.items()), own);
    await server.follow("ann", "old");
    await live.shows("the newest again", ([first]) => first.id === fresh);
    await live.agrees();
    assert.equal(live.feed.items().length, old.length + own.length, "one was deleted, and one is new");
    assert.equal(live.reloads, 1);
  });
}

test("s12: pages of any size descend to the first item without a repeat", async (t) => {
  const server = await Home.start(t, ALL);
  const [old, other] = [await publish(server, "old", depths(60, 0)), await publish(server, "cyd", depths(30, 0.005))];
  await server.follow("ann", "cyd");
  await server.drained();
  await server.page("ann");
  for (const author of ["old", "eve"]) await server.follow("ann", author);
  await server.drained();
  const wanted = (await server.feed("ann")).map(({ id, rank }) => [rank, id]);
  assert.equal(wanted.length, old.length + other.length);
  for (const limit of [7, 100]) {
    const walked = [];
    for (let cursor; ; ) {
      const { items, next } = await server.page("ann", { cursor, limit });
      assert.ok(items.length === limit || next === null, "a short page is the last");
      walked.push(...items.map(({ id, rank }) => [rank, id]));
      if (next === null) break;
      cursor = next;
    }
    assert.deepEqual(walked, wanted, `${limit} a page`);
    assert.ok(walked.every(([rank], n) => n === 0 || rank <= walked[n - 1][0]), "newest first");
  }
});

test("s12: a follow keeps what it was made with when the setting changes", async (t) => {
  const server = await Home.start(t);
  const old = await publish(server, "old", depths(60, 0));
  const shown = async (...readers) => {
    await server.drained();
    return Promise.all(readers.map(async (reader) => (await server.feed(reader)).length));
  };
  await server.follow("ann", "old");
  assert.deepEqual(await shown("ann"), [NEWEST]);
  await restart(server, ALL.config);
  await server.follow("bea", "old");
  assert.deepEqual(await shown("ann", "bea"), [NEWEST, old.length]);
  await restart(server, "");
  await server.follow("cyd", "old");
  assert.deepEqual(await shown("ann", "bea", "cyd"), [NEWEST, old.length, NEWEST]);
  for (const reader of ["ann", "bea"]) await server.unfollow(reader, "old");
  await server.follow("bea", "old");
  await restart(server, ALL.config);
  await server.follow("ann", "old");
  assert.deepEqual(await shown("ann", "bea"), [old.length, NEWEST], "who follows anew follows by the setting of then");
});
