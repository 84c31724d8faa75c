// Mentions: a backend says whom a post or a comment mentions, and each of these who may see it is told, until it is taken back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { exported, imported } from "../actors/moved.js";
import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";

const CONFIG = `
[feeds.notifications]
kinds = ["mention", "comment"]

[notify]
mention = "mention"
comment = "comment"
`;

const count = (wanted) => (items) => items.length === wanted;
const bodies = (phone) => phone.feed.items().map(({ body }) => body);
const comments = (id, more = "") => `/v1/items/${id}/comments${more}`;

/** A server, and the phone of bob, who follows ann, with his mentions. */
async function start(t) {
  const server = await Home.start(t, { config: CONFIG });
  await server.follow("bob", "ann");
  const phone = await Phone.open(t, server, "bob", { channel: "notifications" });
  await phone.subscribed();
  return { server, phone };
}

test("s5: a post tells whom it mentions, an edit tells the others, and its delete takes all of it back", async (t) => {
  const { server, phone } = await start(t);
  const cids = await Phone.open(t, server, "cid", { channel: "notifications" });
  await cids.subscribed();
  const { id } = await server.publish("ann", { text: "@bob hello" }, { mentions: ["bob", "ann"] });
  await phone.shows("the mention", count(1));
  const [item] = phone.feed.items();
  assert.deepEqual([item.author, item.kind, item.body, item.direct], ["ann", "mention", { actor: "ann", item: id }, true]);
  const main = await Phone.open(t, server, "bob", { device: "main" });
  await main.shows("the post, with whom it mentions", (items) => items[0]?.mentions?.join() === "bob,ann");

  await phone.sleep();
  await server.call("PATCH", `/v1/items/${id}`, { body: { text: "@cid hello" }, mentions: ["cid"] });
  await cids.shows("the mention", count(1));
  const token = await server.token("cid");
  const read = await server.call("GET", `/v1/items/${id}`, undefined, { token });
  assert.deepEqual(read.mentions, ["cid"], "who is named may read it, and follows nobody");
  await main.shows("whom it mentions now", (items) => items[0]?.mentions?.join() === "cid");
  await phone.wake();
  await phone.shows("nothing any more", count(0));
  assert.deepEqual([phone.recovered, phone.reloads], [true, 1], "by the log");
  await server.call("DELETE", `/v1/items/${id}`);
  await cids.shows("nothing", count(0));
  for (const each of [phone, cids, main]) await each.agrees();
});

test("s5: who is behind a shield, in no audience, or no follower of a private author is told of no mention", async (t) => {
  const { server, phone } = await start(t);
  const post = (more = {}) => server.publish("ann", { text: "hi" }, { mentions: ["bob", "cid"], ...more });
  await server.call("PUT", "/v1/users/bob/muted/ann");
  await post();
  await server.call("DELETE", "/v1/users/bob/muted/ann");
  await server.call("PUT", "/v1/users/ann/blocked/bob");
  await post();
  await server.call("DELETE", "/v1/users/ann/blocked/bob");
  await post({ audience: { users: ["cid"] } });
  await server.call("PUT", "/v1/users/ann/lists/close/cid");
  await post({ audience: { lists: ["close"] } });
  await server.call("PUT", "/v1/users/ann", { private: true });
  await server.unfollow("bob", "ann");
  await post();
  await server.call("PUT", "/v1/users/ann", { private: false });
  const { id } = await post();
  await phone.shows("the last one", count(1));
  assert.deepEqual(bodies(phone), [{ actor: "ann", item: id }], "also who does not follow her is told of what all may see");
  await phone.agrees();
});

test("s5: a comment tells whom it mentions, until it is edited or deleted, and a device names nobody", async (t) => {
  const { server, phone } = await start(t);
  const { id } = await server.publish("ann", { text: "hers" });
  const anns = await Phone.open(t, server, "ann", { channel: "notifications" });
  await anns.subscribed();
  const said = await server.call("POST", comments(id), { author: "cid", body: "@bob look", mentions: ["bob", "ann"] });
  await phone.shows("the mention", count(1));
  assert.deepEqual(bodies(phone), [{ actor: "cid", item: id, comment: said.id }]);
  await anns.shows("the comment, once", count(1));
  assert.equal(anns.feed.items()[0].kind, "comment");
  const token = await server.token("bob");
  const [shown] = (await server.call("GET", comments(id), undefined, { token })).comments;
  assert.deepEqual(shown.mentions, ["bob", "ann"]);
  const refused = await server.request("POST", comments(id), { body: "@cid", mentions: ["cid"] }, { token });
  assert.equal(refused.status, 422);
  const one = comments(id, `/${said.id}`);
  await server.call("PATCH", one, { body: "look", mentions: [] });
  await phone.shows("nothing", count(0));
  await server.call("PATCH", one, { body: "@bob look", mentions: ["bob"] });
  await phone.shows("the mention again", count(1));
  await server.call("DELETE", one);
  await phone.shows("nothing", count(0));
  await anns.shows("nothing", count(0));
  for (const each of [phone, anns]) await each.agrees();
});

test("i6: after the server was killed in the middle of posts, each that is there has told once", async (t) => {
  const { server, phone } = await start(t);
  const posts = Array.from({ length: 20 }, (_, n) => `post-${n}`);
  const post = (key) => server.publish("ann", { text: key }, { foreign_id: key, mentions: ["bob"] });
  const begun = posts.map((key) => post(key).catch(() => {}));
  await begun[0];
  await server.kill();
  await Promise.all(begun);
  await server.start();
  const ids = [];
  for (const key of posts) ids.push((await post(key)).id);
  await phone.subscribed();
  await phone.shows("a mention for each post", count(posts.length));
  assert.deepEqual(bodies(phone).map(({ item }) => item).toSorted(), ids.toSorted());
  await phone.agrees();
});

test("s5: another store that takes in an export has the lists, and tells nobody anew", async (t) => {
  const [from, to] = [await Server.start(t, { config: CONFIG }), await Server.start(t, { config: CONFIG })];
  const { id } = await from.publish("ann", { text: "hers" }, { mentions: ["bob", "cid"] });
  const said = await from.call("POST", comments(id), { author: "eve", body: "hm", mentions: ["bob"] });
  const lines = await exported(from);
  for (let again = 0; again < 2; again += 1) {
    const report = await imported(to, lines);
    assert.equal(report.at(-1).refused, 0, JSON.stringify(report));
  }
  const told = async () => (await to.page("bob", { name: "notifications" })).items.map(({ author }) => author);
  assert.deepEqual(await told(), ["eve", "ann"]);
  assert.deepEqual((await to.call("GET", `/v1/items/${id}`)).mentions, ["bob", "cid"]);
  assert.deepEqual((await to.call("GET", comments(id, `/${said.id}`))).mentions, ["bob"]);
  await to.call("DELETE", `/v1/items/${id}`);
  await to.drained();
  assert.deepEqual(await told(), ["eve"], "what was told of the post is taken back there, too");
});
