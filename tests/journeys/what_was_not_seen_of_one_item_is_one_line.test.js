// Lines of notifications: likes of an item that were not seen are one line, with a count and the last actors.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { exported, imported } from "../actors/moved.js";
import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const CONFIG = `
[feeds.notifications]
kinds = ["like", "follower"]

[notify]
reaction = "like"
follow = "follower"
`;

const MANY = 200;
const USERS = Array.from({ length: MANY }, (_, n) => `user-${n}`);

const heart = (id, user) => `/v1/items/${id}/reactions/heart/${user}`;
const like = (server, id, user) => server.call("PUT", heart(id, user));
const unlike = (server, id, user) => server.call("DELETE", heart(id, user));

/** What the lines of a phone say: how many, and who was last. */
const lines = (phone) => phone.feed.items().map(({ body: { count, actors } }) => [count, actors]);
const line = (phone, wanted) => phone.shows(JSON.stringify(wanted), () => JSON.stringify(lines(phone)) === JSON.stringify(wanted));
const unread = async (server) => (await server.page("ann", { name: "notifications" })).unread;

/** A phone of ann, which shows her notifications. */
async function open(t, server, device) {
  const phone = await Phone.open(t, server, "ann", { device, channel: "notifications", unread: true });
  await phone.subscribed();
  return phone;
}

/** A server on which ann has a post, and her phone. */
async function told(t) {
  const server = await Home.start(t, { config: CONFIG });
  const { id } = await server.publish("ann", { text: "hers" });
  return { server, id, phone: await open(t, server, "phone") };
}

test("s6: two hundred likes are one line, live and after each way of catching up, and one on the badge", async (t) => {
  const { server, id, phone } = await told(t);
  const tablet = await open(t, server, "tablet");
  await like(server, id, "bob");
  await line(tablet, [[1, ["bob"]]]);
  await tablet.sleep();
  for (let at = 0; at < MANY; at += 50) await Promise.all(USERS.slice(at, at + 50).map((user) => like(server, id, user)));
  await server.drained();
  await phone.shows("all of them", ([only]) => only?.body.count === MANY + 1);
  const [{ body, author, kind }] = phone.feed.items();
  assert.deepEqual([body.item, body.reaction, body.actor, kind], [id, "heart", author, "like"]);
  assert.deepEqual([body.actors.length, new Set(body.actors).size, body.actors[0]], [3, 3, author]);
  assert.ok(body.actors.every((actor) => USERS.includes(actor)), "the last three of them");
  assert.equal(await unread(server), 1, "the badge counts lines");
  await tablet.wake();
  await tablet.shows("what came meanwhile", ([only]) => only?.body.count === MANY + 1);
  const fresh = await open(t, server, "fresh");
  await fresh.shows("the page", ([only]) => only?.body.count === MANY + 1);
  for (const each of [tablet, fresh]) {
    assert.deepEqual(each.feed.items(), phone.feed.items());
    await each.agrees();
  }
  await phone.agrees();
});

test("s6: a line that was seen is closed, and the next like opens another", async (t) => {
  const { server, id, phone } = await told(t);
  for (const user of ["bob", "cid"]) await like(server, id, user);
  await line(phone, [[2, ["cid", "bob"]]]);
  assert.equal(await unread(server), 1);
  await phone.see();
  assert.equal(await unread(server), 0);
  await unlike(server, id, "bob");
  await like(server, id, "dan");
  await line(phone, [[1, ["dan"]], [2, ["cid", "bob"]]]);
  assert.equal(await unread(server), 1);
  await like(server, id, "eve");
  await line(phone, [[2, ["eve", "dan"]], [2, ["cid", "bob"]]]);
  assert.equal(await unread(server), 1);
  await phone.agrees();
});

test("s6: who takes a like back leaves the line, and the last one takes it along", async (t) => {
  const { server, id, phone } = await told(t);
  const users = ["bob", "cid", "dan", "eve"];
  for (const user of users) await like(server, id, user);
  await line(phone, [[4, ["eve", "dan", "cid"]]]);
  await unlike(server, id, "dan");
  await line(phone, [[3, ["eve", "cid", "bob"]]]);
  await unlike(server, id, "eve");
  await line(phone, [[2, ["cid", "bob"]]]);
  await server.call("PUT", "/v1/users/ann/muted/fay");
  await like(server, id, "fay");
  await server.follow("gus", "ann");
  await line(phone, [[1, ["gus"]], [2, ["cid", "bob"]]]);
  for (const user of ["bob", "cid"]) await unlike(server, id, user);
  // A line that changes is removed and comes again, so the phone shows this between the two as well.
  await server.drained();
  await line(phone, [[1, ["gus"]]]);
  assert.equal(await unread(server), 1);
  await phone.agrees();
});

test("s6: a user who is erased is in no line any more, whether it was seen or not", async (t) => {
  const { server, id, phone } = await told(t);
  const { id: other } = await server.publish("ann", { text: "another" });
  for (const user of ["bob", "cid"]) await like(server, id, user);
  await line(phone, [[2, ["cid", "bob"]]]);
  await phone.see();
  for (const user of ["bob", "dan", "eve", "fay"]) await like(server, other, user);
  await line(phone, [[4, ["fay", "eve", "dan"]], [2, ["cid", "bob"]]]);
  const { id: erasure } = await server.call("POST", "/v1/users/bob/erase");
  await until("bob is erased", async () => (await server.call("GET", `/v1/erasures/${erasure}`)).finished_at !== null);
  await line(phone, [[3, ["fay", "eve", "dan"]], [1, ["cid"]]]);
  assert.ok(!JSON.stringify(await server.page("ann", { name: "notifications" })).includes("bob"));
  await phone.agrees();
});

test("s1: after the server was killed in the middle of likes, the line counts each that is there", async (t) => {
  const { server, id, phone } = await told(t);
  for (let round = 0; round < 3; round += 1) {
    const begun = USERS.slice(round * 20, round * 20 + 20).map((user) => like(server, id, user).catch(() => {}));
    await begun[0];
    await server.kill();
    await Promise.all(begun);
    await server.start();
    const { counts } = await server.call("GET", `/v1/items/${id}`);
    await phone.subscribed();
    await phone.shows(`${counts.heart} likes`, ([only]) => only?.body.count === counts.heart);
    assert.equal(phone.feed.items().length, 1);
  }
  for (const user of USERS.slice(0, 60)) await like(server, id, user);
  await phone.shows("all of them", ([only]) => only?.body.count === 60);
  await phone.agrees();
});

test("s6: another store that takes in an export knows who is in which line", async (t) => {
  const [from, to] = [await Server.start(t, { config: CONFIG }), await Server.start(t, { config: CONFIG })];
  const { id } = await from.publish("ann", { text: "hers" });
  for (const user of ["bob", "cid"]) await like(from, id, user);
  const all = await exported(from);
  for (let again = 0; again < 2; again += 1) assert.equal((await imported(to, all)).at(-1).refused, 0);
  const bodies = async () => (await to.page("ann", { name: "notifications" })).items.map(({ body: { count, actors } }) => [count, actors]);
  assert.deepEqual(await bodies(), [[2, ["cid", "bob"]]]);
  await unlike(to, id, "cid");
  await like(to, id, "dan");
  await to.drained();
  assert.deepEqual(await bodies(), [[2, ["dan", "bob"]]], "he leaves it, and the next one joins it");
  const member = JSON.parse(all.split("\n").find((text) => text.includes('"member"')));
  for (const [wrong, why] of [[{ key: "other" }, "feedgate:"], [{ seq: 0 }, "1 to 281474976710656"], [{ actor: "eve" }, "actor"]]) {
    const [{ refused }] = await imported(to, JSON.stringify({ ...member, ...wrong }));
    assert.match(refused.detail, new RegExp(why));
  }
});
