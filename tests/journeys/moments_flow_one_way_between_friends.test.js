// This journey tells the article of 少强 on feed systems over Tablestore: the rules of Moments (朋友圈). Friends follow
// each other, but each message flows one way. Nobody is a big account. Order is by time alone, also for a message
// that says nothing. A friend who posts rubbish is muted. A table of sessions knows how far each device of a user has
// come; a device is told that there is something new, or is sent it. Comments and likes belong to their message, and
// a friend is found by one character of the name.
//
// The article warns of deletes that are fanned out like posts: they come too late. Feeds hold ids alone, so a message
// that is deleted is gone at once. What is published stays in the author's album for ever.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const CONFIG = '[comments]\nvisible = "mutual"\n[search]\nfields = ["text"]\n';

/** Each pair once. Cai is no friend of ann's. */
const FRIENDS = [["ann", "bob"], ["bob", "cai"], ["ann", "dan"], ["bob", "dan"]];

const ids = (items) => items.map(({ id }) => id);
const moment = (server, author, body) => server.publish(author, body, { audience: { mutual: true } });

async function start(t) {
  const server = await Home.start(t, { config: CONFIG });
  for (const [one, other] of FRIENDS) {
    await server.follow(one, other);
    await server.follow(other, one);
  }
  // Eve asks to be a friend, and ann has not answered.
  await server.follow("eve", "ann");
  await server.drained();
  return server;
}

/** How far each device has acknowledged, by its id. */
async function sessions(server, user) {
  const { sessions: all } = await server.call("GET", `/v1/users/${user}/sessions`);
  return Object.fromEntries(all.map(({ device, position }) => [device, position?.offset ?? null]));
}

test("a moment reaches each device of each friend, by time alone, and nobody else", async (t) => {
  const server = await start(t);
  const phone = await Phone.open(t, server, "bob", { device: "phone" });
  const tablet = await Phone.open(t, server, "bob", { device: "tablet", deliver: "notify" });
  const watch = await Phone.open(t, server, "bob", { device: "watch" });
  for (const device of [phone, tablet, watch]) await device.subscribed();
  const posted = [];
  const post = async (...said) => posted.unshift((await moment(server, ...said)).id);
  const shows = (device, what, wanted) => device.shows(what, (items) => ids(items).join() === wanted.join());

  await post("ann", { text: "the first" });
  for (const device of [phone, tablet, watch]) await shows(device, "the moment of a friend", posted);
  await watch.acknowledge();
  await watch.sleep();
  await post("dan", { text: "liked by all" });
  await post("ann", {});
  for (const user of ["ann", "bob", "cai"]) await server.call("PUT", `/v1/items/${posted[1]}/reactions/like/${user}`);
  await post("cai", { text: "the last" });
  for (const device of [phone, tablet]) await shows(device, "four, also what says nothing", posted);
  await phone.acknowledge();
  await server.drained();

  const friends = { ann: [posted[2]], cai: [], dan: [posted[1], posted[3]], eve: [] };
  for (const [user, wanted] of Object.entries(friends)) assert.deepEqual(ids(await server.feed(user)), wanted, user);
  const { position } = await server.page("bob");
  const stands = async () => (await sessions(server, "bob")).phone === position.offset;
  await until("the table has what the phone has acknowledged", stands, { seen: () => sessions(server, "bob") });
  assert.deepEqual(Object.keys(await sessions(server, "bob")).sort(), ["phone", "tablet"]);
  await watch.wake();
  await shows(watch, "what it missed", posted);
  assert.deepEqual([watch.recovered, watch.reloads], [true, 1]);
  for (const device of [phone, tablet, watch]) assert.deepEqual(ids(device.feed.items()), ids(await server.feed("bob")));

  const mutual = async (user) => (await server.call("GET", `/v1/users/${user}/mutual`)).users.map(({ user }) => user).sort();
  assert.deepEqual(await mutual("ann"), ["bob", "dan"]);
});

test("rubbish is muted by one friend, and a friend who is lost takes the moments along, but the album stays", async (t) => {
  const server = await start(t);
  const phones = {};
  for (const user of ["bob", "dan"]) phones[user] = await Phone.open(t, server, user);
  for (const phone of Object.values(phones)) await phone.subscribed();
  const album = [];
  for (const text of ["advertisement", "another", "and another"]) album.unshift((await moment(server, "ann", { text })).id);
  const shows = (user, what, wanted) => phones[user].shows(what, (items) => ids(items).join() === wanted.join());
  for (const user of ["bob", "dan"]) await shows(user, "all of ann", album);

  await server.call("PUT", "/v1/users/bob/muted/ann");
  await shows("bob", "nothing of ann", []);
  album.unshift((await moment(server, "ann", { text: "not for bob" })).id);
  await shows("dan", "all of ann", album);
  await server.call("DELETE", "/v1/users/bob/muted/ann");
  await shows("bob", "what was for him, as it was then", album.slice(1));

  for (const [one, other] of [["ann", "dan"], ["dan", "ann"]]) await server.unfollow(one, other);
  await shows("dan", "nothing of who is no friend any more", []);
  const seen = async (viewer) => ids((await server.call("GET", `/v1/users/ann/outbox?viewer=${viewer}`)).items);
  assert.deepEqual([await seen("ann"), await seen("bob"), await seen("dan"), await seen("eve")], [album, album.slice(1), [], []]);
  for (const phone of Object.values(phones)) await phone.agrees();
});

test("comments and likes are with their moment, among friends, and all of it goes at once when it is deleted", async (t) => {
  const server = await start(t);
  await server.call("PUT", "/v1/users/ann", { name: "王小明" });
  const tokens = {};
  for (const user of ["bob", "cai", "dan", "eve"]) tokens[user] = { token: await server.token(user) };
  const phone = await Phone.open(t, server, "bob");
  const away = await Phone.open(t, server, "dan");
  for (const device of [phone, away]) await device.subscribed();
  const { id } = await moment(server, "ann", { text: "with a mistake" });
  const { id: other } = await moment(server, "ann", { text: "stays" });
  for (const device of [phone, away]) await device.shows("both", (items) => items.length === 2);

  const comments = `/v1/items/${id}/comments`;
  const say = (user, text, more) => server.call("POST", comments, { body: { text }, ...more }, tokens[user]);
  const { id: first } = await say("bob", "lovely");
  await say("dan", "indeed", { reply_to: first });
  await server.call("PUT", `/v1/items/${id}/reactions/like/dan`, undefined, tokens.dan);
  const { comments: said, people } = await server.call("GET", `${comments}?order=oldest`, undefined, tokens.bob);
  assert.deepEqual(said.map(({ author, reply_to }) => [author, reply_to]), [["bob", undefined], ["dan", first]]);
  assert.equal(people, undefined, "neither has a name");
  for (const user of ["cai", "eve"]) await assert.rejects(say(user, "who is that?"), /404/, `${user} is no friend`);
  const [, shown] = (await phone.client.rpc("page", { channel: "feed" })).data.items;
  assert.deepEqual([shown.id, shown.counts], [id, { like: 1 }], "a user is not told of comments that others may see");
  await phone.shows("no change of the list by any of it", (items) => items.length === 2);

  const edited = await server.call("PATCH", `/v1/items/${id}`, { body: { text: "corrected" } }, { headers: { "if-match": '"1"' } });
  assert.equal(edited.version, 2);
  await phone.shows("the new version", (items) => items.some((item) => item.version === 2 && item.body.text === "corrected"));
  const stale = await server.request("PATCH", `/v1/items/${id}`, { body: { text: "too late" } }, { headers: { "if-match": '"1"' } });
  assert.equal(stale.status, 412);
  await away.shows("the new version", (items) => items.some((item) => item.version === 2));
  await away.sleep();

  await until("the search finds it", async () => (await server.call("GET", "/v1/search/items?q=corrected")).items.length === 1);
  await server.call("DELETE", `/v1/items/${id}`);
  // Nothing waits here for the fan-out of the delete.
  const left = {
    page: (await server.page("bob")).items,
    rpc: (await phone.client.rpc("page", { channel: "feed" })).data.items,
    album: (await server.call("GET", "/v1/users/ann/outbox?viewer=bob")).items,
  };
  for (const [where, items] of Object.entries(left)) assert.deepEqual(ids(items), [other], where);
  assert.deepEqual((await server.call("GET", "/v1/search/items?q=corrected")).items, []);
  for (const path of [`/v1/items/${id}`, comments, `/v1/items/${id}/reactions`]) {
    for (const as of [undefined, tokens.bob]) assert.equal((await server.request("GET", path, undefined, as)).status, 404, path);
  }
  await phone.shows("the other alone", (items) => ids(items).join() === other);
  await away.wake();
  await away.shows("the other alone", (items) => ids(items).join() === other);
  const found = await server.call("GET", `/v1/search/users?q=${encodeURIComponent("明")}`, undefined, tokens.eve);
  assert.deepEqual(found.users, [{ user: "ann", name: "王小明" }]);
  for (const device of [phone, away]) await device.agrees();
});
