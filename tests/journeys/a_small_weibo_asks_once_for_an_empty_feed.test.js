// This journey tells the article of lily on a small Weibo for a college (2024). Students follow each other and the
// official accounts of the student union and of the college, which are big accounts and so are pulled. A feed is made
// when its reader first comes. From then on four events change it: a post, a delete, a follow, an unfollow. It is
// kept that a feed is empty, so that nobody asks the database for it again.
//
// The program of the article has two faults: what is pushed stays hidden while "empty" is kept; and a post that was
// pushed stands by the time of the push, but in a feed that is made it stands by the time when it was written.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Scrape } from "../actors/openmetrics.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const CONFIG = '[search]\nfields = ["text"]\n';
const OFFICIAL = ["union", "college"];
const HOUR = 3_600_000;

const ids = (items) => items.map(({ id }) => id);
const texts = (items) => items.map(({ body }) => body.text);

async function start(t) {
  const server = await Home.start(t, { config: CONFIG });
  for (const author of OFFICIAL) await server.call("PUT", `/v1/authors/${author}`, { class: "pull" });
  return server;
}

/** How often the gateways of a cluster have begun to make an inbox out of PostgreSQL. */
async function made({ gateways }) {
  const scrapes = await Promise.all(gateways.map(({ url, key }) => Scrape.of(url, key)));
  const begun = { call: "begin", outcome: "answered" };
  return scrapes.reduce((sum, scrape) => sum + scrape.value("feedgate_redis_calls_total", begun), 0);
}

test("an empty feed is made once, and shows the first post of anybody at once", async (t) => {
  const server = await start(t);
  for (const author of ["ming", ...OFFICIAL]) await server.follow("lily", author);
  await server.drained();
  const inboxes = async () => (await server.call("GET", "/v1/stats")).inboxes.inboxes;
  assert.equal(await inboxes(), 0, "nobody has come yet");
  const empty = await server.page("lily");
  assert.deepEqual([empty.items, empty.next, await inboxes()], [[], null, 1]);
  const phone = await Phone.open(t, server, "lily");
  await phone.subscribed();
  for (let n = 0; n < 5; n += 1) {
    const again = await server.page("lily");
    assert.deepEqual([again.items, again.position], [[], empty.position], "an inbox that is made again has another epoch");
  }
  if (server.redis) assert.equal(await made(server), 1, "all of these reads have asked PostgreSQL for one inbox");

  await server.publish("ming", { text: "pushed" });
  await phone.shows("the post of a student", (items) => texts(items).join() === "pushed");
  await server.publish("union", { text: "pulled" });
  await phone.shows("the post of an official account", (items) => texts(items).join() === "pulled,pushed");
  assert.equal(phone.position.epoch, empty.position.epoch, "the inbox that was empty has grown");
  await phone.agrees();
});

test("four events change the feed of who is online, and who comes later is made the same one in the same order", async (t) => {
  const server = await start(t);
  const students = ["lily", "late"];
  for (const reader of students) for (const author of ["ming", "hong", ...OFFICIAL]) await server.follow(reader, author);
  const now = Date.now();
  const post = (author, text, hours) => server.publish(author, { text }, { published_at: now - hours * HOUR });
  await post("zhang", "the third last of zhang", 9);
  await post("zhang", "the second last of zhang", 6);
  const lily = await Phone.open(t, server, "lily");
  await lily.subscribed();
  const sees = (what, ...wanted) => lily.shows(what, (items) => texts(items).join() === wanted.join());

  await post("ming", "of today", 1);
  await post("college", "notice of yesterday", 20);
  await post("hong", "of hong", 3);
  const { id: mistaken } = await post("union", "a mistake", 2);
  // Such as a post that waits for an editor: what was written first is pushed last.
  await post("ming", "of this morning", 5);
  await post("union", "notice of last week", 7 * 24);
  const posted = ["of today", "a mistake", "of hong", "of this morning", "notice of yesterday", "notice of last week"];
  await sees("each post by the time when it was written", ...posted);

  await server.call("DELETE", `/v1/items/${mistaken}`);
  for (const reader of students) await server.follow(reader, "zhang");
  for (const reader of students) await server.unfollow(reader, "hong");
  await post("zhang", "the last of zhang", 4);
  const left = [
    "of today", "the last of zhang", "of this morning", "the second last of zhang", "the third last of zhang",
    "notice of yesterday", "notice of last week",
  ];
  await sees("no mistake, zhang, and no hong", ...left);
  await server.drained();
  assert.equal((await server.call("GET", "/v1/stats")).inboxes.inboxes, 1, "nothing is kept for who has never come");

  const late = await Phone.open(t, server, "late");
  await late.subscribed();
  assert.deepEqual(texts(late.feed.items()), left);
  assert.deepEqual(ids(late.feed.items()), ids(lily.feed.items()));
  for (const phone of [lily, late]) await phone.agrees();
});

test("小明 finds 王小明 and what is said of him, and nothing that was deleted, is hidden, or is for others", async (t) => {
  const server = await start(t);
  const names = { ming: "王小明", hong: "李小红", tian: "小 明天" };
  for (const [user, name] of Object.entries(names)) await server.call("PUT", `/v1/users/${user}`, { name });
  for (const author of ["ming", "hong", ...OFFICIAL]) await server.follow("lily", author);
  const phone = await Phone.open(t, server, "lily");
  await phone.subscribed();
  const post = async (author, text, more) => (await server.publish(author, { text }, more)).id;
  const posts = {
    own: await post("ming", "大家好，我是王小明。"),
    official: await post("college", "祝贺王小明同学获奖！"),
    deleted: await post("ming", "小明写错了"),
    edited: await post("ming", "小明明天去图书馆"),
    exam: await post("union", "明天小考，小心，明白吗？"),
    hidden: await post("hong", "小明是我的同学"),
    other: await post("ming", "小明只告诉你", { audience: { users: ["hong"] } }),
    stranger: await post("wang", "谁认识小明？"),
  };
  const { exam } = posts;
  const token = await server.token("lily");
  const ask = (what, query, as) => server.call("GET", `/v1/search/${what}?${new URLSearchParams(query)}`, undefined, as);
  const search = async (query, as) => ids((await ask("items", { q: "小明", ...query }, as)).items);
  const finds = async (...names) => {
    const wanted = names.map((name) => posts[name]);
    assert.deepEqual(await search({}, { token }), wanted);
    await phone.shows(`${names} and the exam`, (items) => ids(items).filter((id) => id !== exam).join() === wanted.join());
    assert.deepEqual(await search({ viewer: "lily" }), [posts.stranger, ...wanted], "a backend finds for her what strangers say too");
  };
  await until("the index has all", async () => (await search({})).length === 7);
  await finds("hidden", "edited", "deleted", "official", "own");

  await server.call("DELETE", `/v1/items/${posts.deleted}`);
  await finds("hidden", "edited", "official", "own");
  await server.call("PUT", "/v1/users/hong/hidden/lily");
  await finds("edited", "official", "own");
  await server.call("PATCH", `/v1/items/${posts.edited}`, { body: { text: "他明天去图书馆" } });
  assert.deepEqual(await search({}, { token }), [posts.official, posts.own]);
  const users = async (q) => (await ask("users", { q }, { token })).users;
  assert.deepEqual(await users("小明"), [{ user: "ming", name: "王小明" }], "and not 小 明天");
  assert.deepEqual((await users("小")).map(({ user }) => user), ["tian", "hong", "ming"]);
  await phone.agrees();
});
