// Notifications: a like, a comment, a repost or a follow is told by a direct item, in a feed of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { exported, imported } from "../actors/moved.js";
import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";

const CONFIG = `
[feeds.notifications]
kinds = ["like", "comment", "reply", "repost", "follower"]

[notify]
reaction = "like"
comment = "comment"
reply = "reply"
repost = "repost"
follow = "follower"
grouped = []
`;

const heart = (id, user) => `/v1/items/${id}/reactions/heart/${user}`;

const kinds = (phone) => phone.feed.items().map(({ author, kind }) => `${author} ${kind}`);
const count = (wanted) => (items) => items.length === wanted;

/** A server on which ann has a post, and her phone, which is subscribed to her notifications. */
async function told(t) {
  const server = await Home.start(t, { config: CONFIG });
  const { id } = await server.publish("ann", { text: "hers" });
  const phone = await Phone.open(t, server, "ann", { device: "phone", channel: "notifications" });
  await phone.subscribed();
  return { server, id, phone };
}

test("s5: a like arrives live and after a catch-up, and goes when it is taken back", async (t) => {
  const { server, id, phone } = await told(t);
  const token = await server.token("bob");
  await server.follow("bob", "ann");
  await phone.shows("the follower", count(1));
  const like = () => server.call("PUT", heart(id, "bob"), undefined, { token });
  await like();
  await phone.shows("the like", count(2));
  const [item] = phone.feed.items();
  assert.deepEqual([item.author, item.kind, item.body], ["bob", "like", { actor: "bob", item: id, reaction: "heart" }]);
  assert.equal(item.direct, true);
  await like();
  await server.call("PUT", "/v1/users/bob", { name: "Bob" });
  await server.drained();
  const { items, people } = await server.page("ann", { name: "notifications" });
  assert.deepEqual([items.length, people.bob], [2, { name: "Bob" }], "given twice, told once, with who did it");

  await phone.sleep();
  await server.call("DELETE", heart(id, "bob"), undefined, { token });
  await server.call("PUT", heart(id, "cid"));
  await server.call("POST", `/v1/items/${id}/comments`, { author: "dan", body: { text: "nice" } });
  await server.drained();
  await phone.wake();
  await phone.shows("what came meanwhile", count(3));
  assert.deepEqual(kinds(phone), ["dan comment", "cid like", "bob follower"]);
  assert.deepEqual([phone.recovered, phone.reloads], [true, 1], "all of it by the log");
  await server.call("DELETE", heart(id, "cid"));
  await phone.shows("the like is gone", count(2));
  assert.deepEqual((await server.page("ann")).items, [], "nothing of it is in the main feed");
  await phone.agrees();
});

test("s5: who is blocked or muted causes nothing, and nobody hears of what one did oneself", async (t) => {
  const { server, id, phone } = await told(t);
  await server.call("PUT", "/v1/users/ann/blocked/bob");
  await server.call("PUT", "/v1/users/ann/muted/cid");
  for (const user of ["bob", "cid", "ann"]) {
    await server.call("PUT", heart(id, user));
    await server.call("POST", `/v1/items/${id}/comments`, { author: user, body: { text: "hm" } });
    await server.publish(user, { text: "see" }, { ref: id });
    if (user !== "ann") await server.follow(user, "ann");
  }
  await server.call("PUT", heart(id, "dan"));
  await phone.shows("the like of dan alone", count(1));
  assert.deepEqual(kinds(phone), ["dan like"]);
  await phone.agrees();
});

test("s5: a repost, an answer and a comment are told, each to whom it concerns, until they are deleted", async (t) => {
  const { server, id, phone } = await told(t);
  const say = (author, text, more) => server.call("POST", `/v1/items/${id}/comments`, { author, body: { text }, ...more });
  const bobs = await Phone.open(t, server, "bob", { channel: "notifications" });
  await bobs.subscribed();
  const first = await say("bob", "first");
  const answer = await say("cid", "answer", { reply_to: first.id });
  const copy = await server.publish("dan", { text: "see" }, { ref: id });
  await phone.shows("two comments and the repost", count(3));
  await bobs.shows("the answer", count(1));
  assert.deepEqual(kinds(phone), ["dan repost", "cid comment", "bob comment"]);
  assert.deepEqual(bobs.feed.items()[0].body, { actor: "cid", item: id, comment: answer.id, reply_to: first.id });
  assert.deepEqual(phone.feed.items()[0].body, { actor: "dan", item: id, repost: copy.id });
  await server.call("DELETE", `/v1/items/${id}/comments/${answer.id}`);
  await server.call("DELETE", `/v1/items/${copy.id}`);
  await phone.shows("the comment of bob", count(1));
  await bobs.shows("nothing", count(0));
  for (const each of [phone, bobs]) await each.agrees();
});

test("s5: what was seen stays when it is taken back, and is not told again", async (t) => {
  const { server, id, phone } = await told(t);
  await server.call("PUT", heart(id, "bob"));
  await phone.shows("the like", count(1));
  await phone.see();
  await server.call("DELETE", heart(id, "bob"));
  await server.call("PUT", heart(id, "bob"));
  await server.call("PUT", heart(id, "cid"));
  await phone.shows("one more", count(2));
  assert.deepEqual(kinds(phone), ["cid like", "bob like"]);
  assert.equal((await server.page("ann", { name: "notifications" })).unread, 1);
  await phone.agrees();
});

test("i6: after the server was killed in the middle of likes, each that is there was told once", async (t) => {
  const { server, id, phone } = await told(t);
  const users = Array.from({ length: 30 }, (_, n) => `user-${n}`);
  const give = (user) => server.call("PUT", heart(id, user));
  for (let round = 0; round < 3; round += 1) {
    const begun = users.slice(round * 10, round * 10 + 10).map((user) => give(user).catch(() => {}));
    await begun[0];
    await server.kill();
    await Promise.all(begun);
    await server.start();
    const { reactions } = await server.call("GET", `/v1/items/${id}/reactions`);
    await phone.subscribed();
    await phone.shows("a line for each like", count(reactions.length));
    const actors = phone.feed.items().map(({ body }) => body.actor);
    assert.deepEqual(actors.toSorted(), reactions.map(({ user }) => user).toSorted());
  }
  for (const user of users) await give(user);
  await phone.shows("all of them", count(users.length));
  await phone.agrees();
});

test("s5: another store that takes in an export knows what was told of what", async (t) => {
  const [from, to] = [await Server.start(t, { config: CONFIG }), await Server.start(t, { config: CONFIG })];
  const { id } = await from.publish("ann", { text: "hers" });
  for (const user of ["bob", "cid"]) await from.call("PUT", heart(id, user));
  await from.follow("bob", "ann");
  const lines = await exported(from);
  for (let again = 0; again < 2; again += 1) {
    const report = await imported(to, lines);
    assert.equal(report.at(-1).refused, 0, JSON.stringify(report));
  }
  const bodies = async () => (await to.page("ann", { name: "notifications" })).items.map(({ body }) => body);
  const like = (actor) => ({ actor, item: id, reaction: "heart" });
  assert.deepEqual(await bodies(), [{ actor: "bob" }, like("cid"), like("bob")], "nothing is told anew");
  await to.call("DELETE", heart(id, "bob"));
  await to.unfollow("bob", "ann");
  await to.drained();
  assert.deepEqual(await bodies(), [like("cid")]);
  const taken = { author: "eve", body: 1, foreign_id: "feedgate:x" };
  assert.equal((await to.request("POST", "/v1/items", taken)).status, 422, "no backend makes such an item");
});
