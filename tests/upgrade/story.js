// What a product has written before it is upgraded, and everything that is read of it.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";

/** Settings that every version knows, and those that came later. */
const OLDEST = `
backfill = 20

[feeds.likes]
kinds = ["like"]
`;
const LATER = `
[feeds.notifications]
kinds = ["mention", "comment"]

[notify]
mention = "mention"
comment = "comment"

[search]
fields = ["text"]
`;

/** The settings of an earlier version, and those that a server of this tree has for the same store. */
export const settings = ({ beside }) => (beside ? OLDEST + LATER : OLDEST);
export const SETTINGS = OLDEST + LATER;

const USERS = ["ann", "eve", "bob", "pia"];
const FEEDS = ["feed", "likes"];

/**
 * Bob is pushed, pia is pulled, everyone sees the star; ann and eve read. `later`: also writes what came after the oldest
 * version: reactions, comments, people, audiences and so on. Answers bob's posts, the oldest first.
 */
export async function write(server, { later }) {
  await server.call("PUT", "/v1/authors/bob", { class: "push" });
  await server.call("PUT", "/v1/authors/pia", { class: "pull" });
  await server.call("PUT", "/v1/authors/star", { class: "everyone" });
  for (const [reader, author] of [["ann", "bob"], ["ann", "pia"], ["eve", "bob"], ["eve", "ann"], ["bob", "ann"]]) await server.follow(reader, author);
  await server.publishMany("bob", 30);
  await server.publishMany("pia", 10);
  await server.publish("star", { text: "from the star" });
  await server.publish("bob", { text: "liked" }, { kind: "like" });
  const posts = (await server.call("GET", "/v1/users/bob/outbox?limit=100")).items.filter(({ body }) => body.text.startsWith("post")).reverse();
  await server.call("PATCH", `/v1/items/${posts[4].id}`, { body: { text: "edited" } });
  await server.call("DELETE", `/v1/items/${posts[5].id}`);
  await server.call("PUT", "/v1/users/eve/muted/pia");
  await server.call("PUT", "/v1/users/bob/blocked/pia");
  if (later) await writeLater(server, posts);
  await server.drained();
  return posts;
}

/** What stands around items, and what is narrowed, private, ranked and pinned. */
async function writeLater(server, posts) {
  const [first, second, third] = posts;
  await server.call("PUT", "/v1/users/bob", { name: "Bob" });
  for (const user of ["ann", "eve"]) await server.call("PUT", `/v1/items/${first.id}/reactions/like/${user}`);
  for (const text of ["one", "two"]) await server.call("POST", `/v1/items/${first.id}/comments`, { author: "ann", body: { text } });
  const said = await server.call("POST", `/v1/items/${second.id}/comments`, { author: "eve", body: { text: "away" } });
  await server.call("DELETE", `/v1/items/${second.id}/comments/${said.id}`);
  await server.publish("ann", { text: "look" }, { ref: third.id });
  await server.publish("bob", { text: "hello @ann" }, { mentions: ["ann"] });
  await server.publish("bob", { text: "for eve" }, { audience: { users: ["eve"] } });
  await server.call("PUT", `/v1/users/bob/pins/${third.id}`);
  await server.call("PUT", "/v1/users/bob/lists/near/ann");
  await server.call("PUT", "/v1/users/pia", { private: true });
  await server.follow("bob", "ann");
  await server.follow("star", "pia");
  const { position } = await server.page("eve", { limit: 1 });
  await server.call("PUT", "/v1/users/eve/seen", { feed: "feed", position });
}

/** Everything that is read of the product: {path: answer}; but for positions, which are for phones, and cursors. */
export async function read(server, posts, { later }) {
  const paths = USERS.flatMap((user) => [
    ...FEEDS.map((name) => `/v1/users/${user}/feed?name=${name}&limit=100`),
    ...["outbox", "following", "followers", "muted", "hidden", "blocked"].map((list) => `/v1/users/${user}/${list}?limit=100`),
  ]);
  paths.push(...posts.map(({ id }) => `/v1/items/${id}`), ...USERS.map((user) => `/v1/authors/${user}`));
  if (later) {
    paths.push(...posts.slice(0, 6).flatMap(({ id }) => ["comments", "reactions", "reposts", "versions"].map((what) => `/v1/items/${id}/${what}`)));
    paths.push(...USERS.flatMap((user) => ["lists", "requests", "sent", "seen", "feed?name=notifications"].map((what) => `/v1/users/${user}/${what}`)));
    paths.push(...USERS.map((user) => `/v1/users/${user}`), "/v1/users/bob/lists/near");
  }
  const found = {};
  for (const path of paths) {
    const { status, body } = await server.request("GET", path);
    const { position: _position, next: _next, newest: _newest, people, ...said } = body;
    // The version before shows nobody beside a single item, or beside who reacted.
    const showsPeople = !/^\/v1\/items\/\d+(\/reactions)?$/.test(path);
    found[path] = { status, body: showsPeople && people ? { ...said, people } : said };
  }
  return found;
}

/** What an answer still says of what an earlier version said: a later one may say more in an object. */
function within(now, before) {
  if (Array.isArray(before)) return Array.isArray(now) ? now.map((each, i) => (i < before.length ? within(each, before[i]) : each)) : now;
  if (before === null || typeof before !== "object" || now === null || typeof now !== "object") return now;
  return Object.fromEntries(Object.keys(before).map((key) => [key, within(now[key], before[key])]));
}

/** Fails if something that was read before is not what is read now. */
export function holds(now, before) {
  for (const path of Object.keys(before)) assert.deepEqual(within(now[path], before[path]), before[path], path);
}

/** Fails if phones of ann do not come to show her feed, each change once; counts come with a page alone. */
export async function show(server, phones) {
  const said = (items) => items.map(({ counts: _counts, own: _own, ...item }) => item);
  await server.drained();
  for (const phone of phones) {
    await phone.catchesUp();
    assert.deepEqual(said(phone.feed.items()), said(await server.feed("ann")));
    assert.equal(phone.repeated, 0, "no change came twice");
  }
}

/** What came after the oldest version, done to what that version has written. */
export async function useAll(server, posts) {
  const [old, other] = [posts[8], posts[9]];
  const ann = await server.token("ann");
  await server.call("PUT", `/v1/items/${old.id}/reactions/love/eve`);
  await server.call("POST", `/v1/items/${old.id}/comments`, { body: { text: "late" } }, { token: ann });
  await server.call("PATCH", `/v1/items/${other.id}`, { body: { text: "edited today" }, mentions: ["ann"] });
  const { id } = await server.publish("ann", { text: "look at that" }, { ref: old.id });
  await server.drained();
  const shown = (await server.call("GET", "/v1/users/ann/feed?limit=100", undefined, { token: ann })).items.find((item) => item.id === old.id);
  assert.deepEqual(shown.counts, { comments: 1, love: 1, reposts: 1 });
  assert.equal((await server.call("GET", `/v1/items/${id}`)).ref_item.id, old.id);
  const { versions } = await server.call("GET", `/v1/items/${other.id}/versions`);
  assert.ok(versions.some(({ body }) => body.text === other.body.text), JSON.stringify(versions));
  const told = () => server.page("ann", { name: "notifications" });
  await until("ann is told of the mention", async () => (await told()).items.some(({ body }) => body.item === other.id), { seen: told });
  const search = () => server.call("GET", `/v1/search/items?q=${encodeURIComponent(old.body.text)}`);
  await until("an old post is found", async () => (await search()).items.some((item) => item.id === old.id), { seen: search });
}
