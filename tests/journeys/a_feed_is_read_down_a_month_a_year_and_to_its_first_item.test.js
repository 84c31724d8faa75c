// This journey tells the notes of giles on feed systems (2021). Followers who are online are pushed to. Who is away
// has the feed made of the outboxes on return. Most readers look at the newest items alone, so a month is kept; who
// reads on gets a year, and then everything, and the feed does not stay that large.
//
// The notes warn of pages that are counted by number: a new item moves all numbers, and the last item of a page comes
// again on the next one. A page begins below the last item of the page before. Where two items have one time, the id
// decides.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const DAY = 24 * 3_600_000;
const YEAR = 365;
const AUTHORS = ["ann", "bob"];

const ids = (items) => items.map(({ id }) => id);
const newestFirst = (a, b) => b.published_at - a.published_at || (BigInt(a.id) < BigInt(b.id) ? 1 : -1);

/** A post of each author on so many days, the last one today; those of a day have one time. The newest comes first. */
async function diary(server, length) {
  const now = Date.now() - 1000;
  const post = (days) => AUTHORS.map((author) => ({ author, body: { days }, published_at: now - days * DAY }));
  const posts = Array.from({ length }, (_, n) => post(length - 1 - n)).flat();
  const stored = [];
  while (stored.length < posts.length) {
    const ops = posts.slice(stored.length, stored.length + 1000);
    const { results } = await server.call("POST", "/v1/items/batch", { ops });
    assert.ok(results.every(({ status }) => status === 201), "every post is accepted");
    stored.push(...results.map(({ id }, n) => ({ ...ops[n], id })));
  }
  await server.drained();
  return stored.sort(newestFirst);
}

/** The feed by pages of 99: each second one ends between two items of one time. `between` gets how many were read. */
async function read(server, reader, between = async () => {}) {
  const items = [];
  for (let cursor = null; ; ) {
    const page = await server.page(reader, { cursor, limit: 99 });
    items.push(...page.items);
    assert.ok(page.next === null || page.items.length === 99, "only the last page is short");
    if (page.next === null) return items;
    cursor = page.next;
    await between(items.length);
  }
}

const LENGTH = YEAR + 30;

/** How far down a follow of today reaches by the setting, and how many items of each author a phone gets at once. */
const DEPTHS = [
  { depth: "a month", backfill: 30, days: 30, brought: 30 },
  { depth: "a year", backfill: YEAR, days: YEAR, brought: YEAR },
  { depth: "all that there is", backfill: '"all"', days: LENGTH, brought: 100 },
];

for (const { depth, backfill, days, brought } of DEPTHS) {
  test(`a feed of authors who are followed today reaches down ${depth}`, async (t) => {
    const server = await Home.start(t, { config: `backfill = ${backfill}\n` });
    const posts = await diary(server, LENGTH);
    const phone = await Phone.open(t, server, "eve");
    await phone.subscribed();
    for (const author of AUTHORS) await server.follow("eve", author);
    const [newest, deep] = [brought, days].map((each) => ids(posts.slice(0, AUTHORS.length * each)));
    await phone.shows("what the follows bring", (items) => ids(items).join() === newest.join());
    assert.equal(posts[deep.length - 1].body.days, days - 1);
    assert.deepEqual(ids(await read(server, "eve")), deep);

    const { id } = await server.publish("bob", { days: 0 });
    await phone.shows("the next one above", (items) => ids(items).join() === [id, ...newest].join());
    await phone.agrees();
    assert.deepEqual(ids(phone.feed.items()), [id, ...deep]);
  });
}

test("who has followed for three years reads down to the first item, whether the feed was pushed or is made now", async (t) => {
  const server = await Home.start(t);
  const readers = ["online", "returns"];
  for (const reader of readers) for (const author of AUTHORS) await server.follow(reader, author);
  await server.drained();
  await server.page("online");
  const posts = await diary(server, 3 * YEAR);
  const stats = async () => (await server.call("GET", "/v1/stats")).inboxes;
  assert.equal((await stats()).inboxes, 1, "who never came has no inbox");
  await server.page("returns");
  const { inboxes, entries } = await stats();
  assert.equal(inboxes, 2);
  assert.ok(entries >= 2000 && entries < 2600, `some thousand changes of each are kept, not all: ${entries}`);
  for (const reader of readers) assert.deepEqual(ids(await read(server, reader)), ids(posts), reader);
  assert.equal((await stats()).entries, entries, "what was read far down is not kept in the inbox");

  // What happens while the reader is a month, a year and two years down.
  const phone = await Phone.open(t, server, "returns");
  await phone.subscribed();
  await phone.loadAll();
  const [left, fresh] = [[...posts], []];
  const scrolled = await read(server, "returns", async (count) => {
    if (![2 * 99, 8 * 99, 15 * 99].includes(count)) return;
    fresh.unshift((await server.publish("ann", { days: 0 })).id);
    const [gone] = left.splice(count + 100, 1);
    await server.call("DELETE", `/v1/items/${gone.id}`);
  });
  assert.deepEqual(ids(scrolled), ids(left), "nothing twice, nothing left out, and nothing that is deleted");
  await phone.shows("three more and three less", (items) => ids(items).join() === [...fresh, ...ids(left)].join());

  await server.unfollow("returns", "bob");
  await phone.shows("ann alone, down to the first", (items) => items.every(({ author }) => author === "ann"));
  await phone.agrees();
  assert.equal(phone.feed.items().at(-1).body.days, 3 * YEAR - 1);
  assert.equal(phone.reloads, 1, "all of it by the log");
});
