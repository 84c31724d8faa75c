import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const CONFIG = '[search]\nfields = ["text", "post.title"]\n';

const ids = (items) => items.map(({ id }) => id);

/** A page of a search, as a backend, or with a token as its reader. */
async function search(server, query, token) {
  return server.call("GET", `/v1/search/items?${new URLSearchParams(query)}`, undefined, token && { token });
}

const texts = async (server, query, token) => (await search(server, query, token)).items.map(({ body }) => body.text);

/** Waits until a search finds so many items: in a cluster what was written is found within seconds. */
async function finds(server, query, count) {
  return until(`${JSON.stringify(query)} finds ${count}`, async () => {
    const { items, building } = await search(server, { limit: 100, ...query });
    return !building && items.length === count && items;
  }, { seen: () => search(server, query) });
}

test("s14: a backend finds everything, a viewer what no shield hides, and a reader what the reader sees", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  await server.follow("bob", "ann");
  await server.publish("ann", { text: "我是王小明, hello", post: { title: "Greeting" } }, { published_at: 1001 });
  await server.publish("eve", { text: "hello 小 明" }, { published_at: 1002 });
  await server.publish("eve", { text: "hello psst", post: { title: "greeting" } }, { audience: { users: ["bob"] }, published_at: 1003 });
  await finds(server, { q: "HELLO" }, 3);
  const token = await server.token("bob");
  assert.deepEqual(await texts(server, { q: "小明" }), ["我是王小明, hello"], "characters that stand together");
  assert.deepEqual(await texts(server, { q: "greeting hello" }), ["hello psst", "我是王小明, hello"], "words of two fields");
  assert.deepEqual(await texts(server, { q: "hell" }), []);
  assert.deepEqual(await texts(server, { q: "hello", viewer: "bob" }), ["hello psst", "hello 小 明", "我是王小明, hello"]);
  assert.deepEqual(await texts(server, { q: "hello", viewer: "dan" }), ["hello 小 明", "我是王小明, hello"]);
  assert.deepEqual(await texts(server, { q: "hello" }, token), ["hello psst", "我是王小明, hello"], "followed or addressed");
  await server.call("PUT", "/v1/users/eve/blocked/bob");
  assert.deepEqual(await texts(server, { q: "hello", viewer: "bob" }), ["我是王小明, hello"], "a block counts at once");
  await server.call("PUT", "/v1/users/bob/blocked/ann");
  for (const [query, as] of [[{ q: "hello", viewer: "bob" }], [{ q: "hello" }, token]]) assert.deepEqual(await texts(server, query, as), []);
  assert.equal((await texts(server, { q: "hello" })).length, 3, "a backend that names nobody finds all");
  await assert.rejects(search(server, { q: "hello", viewer: "eve" }, token), /of user bob/);
});

test("s14: an edit and a delete count at once, and pages go on without a gap or a repeat", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  const posts = [];
  for (let n = 0; n < 25; n += 1) posts.push(await server.publish("ann", { text: `天气 number ${n}` }, { published_at: 1000 + n }));
  await finds(server, { q: "天气" }, 25);
  await server.call("PATCH", `/v1/items/${posts[3].id}`, { body: { text: "weather" } });
  await server.call("DELETE", `/v1/items/${posts[5].id}`);
  assert.equal((await search(server, { q: "天气", limit: 100 })).items.length, 23);
  assert.deepEqual(ids(await finds(server, { q: "weather" }, 1)), [posts[3].id]);

  const paged = [];
  for (let cursor; ; ) {
    const page = await search(server, { q: "天气", limit: 4, ...(cursor && { cursor }) });
    paged.push(...page.items);
    // What is published meanwhile is newer, and changes nothing of the pages that follow.
    await server.publish("ann", { text: "天气 later" });
    cursor = page.next;
    if (cursor === null) break;
  }
  const right = ids(posts).filter((_, n) => ![3, 5].includes(n)).reverse();
  assert.deepEqual(ids(paged), right);
  assert.equal((await search(server, { q: "天气", since: 1010, until: 1019 })).items.length, 10);
  assert.deepEqual(await texts(server, { q: "number", author: "ann", kind: "none" }), []);
});

test("s14: users are found by their names, and no longer once they are erased, with all that they wrote", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  await server.call("PUT", "/v1/users/u1", { name: "王小明" });
  await server.call("PUT", "/v1/users/u2", { name: "Ming 小明", avatar: "/u2.png" });
  await server.publish("u2", { text: "written by ming" });
  const users = async (q) => (await server.call("GET", `/v1/search/users?${new URLSearchParams({ q })}`)).users;
  await until("both are found", async () => (await users("小明")).length === 2);
  assert.deepEqual(await users("ming"), [{ user: "u2", name: "Ming 小明", avatar: "/u2.png" }]);
  await finds(server, { q: "written" }, 1);
  const { id } = await server.call("POST", "/v1/users/u2/erase");
  await until("the erasure is finished", async () => (await server.call("GET", `/v1/erasures/${id}`)).finished_at !== null);
  assert.deepEqual([(await users("小明")).map(({ user }) => user), await users("u2"), await texts(server, { q: "written" })], [["u1"], [], []]);
});

test("s14: a server that was killed finds all of it, and one with other fields builds its index anew", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  const members = server.members ?? [server];
  await server.publishMany("ann", 300);
  await server.publish("ann", { text: "found", other: "elsewhere" });
  for (const member of members) await member.kill();
  for (const member of members) await member.start();
  const all = await finds(server, { q: "found" }, 1);
  await finds(server, { q: "post", limit: 100 }, 100);
  for (const member of members) await member.stop();
  for (const member of members) {
    await member.configure('[search]\nfields = ["other"]\n');
    await member.start();
  }
  assert.deepEqual(ids(await finds(server, { q: "elsewhere" }, 1)), ids(all));
  assert.deepEqual(await texts(server, { q: "found" }), []);
  for (const member of members) await member.stop();
  for (const member of members) {
    await member.configure("");
    await member.start();
  }
  await assert.rejects(search(server, { q: "found" }), /\[search\] fields = /);
});

test("s14: a phone finds with its token what its feed shows, and sees the names beside it", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  await server.follow("bob", "ann");
  await server.call("PUT", "/v1/users/ann", { name: "Ann" });
  const phone = await Phone.open(t, server, "bob");
  await server.publish("ann", { text: "in the feed" });
  await phone.shows("the post", (items) => items.length === 1);
  await finds(server, { q: "feed" }, 1);
  const page = await search(server, { q: "feed" }, await server.token("bob"));
  assert.deepEqual([ids(page.items), page.people, page.next], [ids(phone.feed.items()), { ann: { name: "Ann" } }, null]);
});
