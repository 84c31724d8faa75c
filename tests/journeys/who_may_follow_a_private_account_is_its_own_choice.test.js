// A private account: a follow is a request until it is accepted. It brings and counts nothing before, it can be refused
// and taken back, a block ends it, and when the account is private no more, all who have asked follow.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const names = async (server, list) => (await server.call("GET", `/v1/users/${list}`)).users.map(({ user }) => user);

/** Asks to follow. Answers the status and the body. */
const ask = async (server, reader, author = "ann") => {
  const { status, body } = await server.request("PUT", `/v1/users/${reader}/following/${author}`);
  return [status, body?.pending ?? false];
};

const ASKED = [202, true];
const FOLLOWS = [204, false];

test("s9: a request is accepted, refused or taken back, and only then there is a follow, or none", async (t) => {
  const server = await Home.start(t);
  await server.follow("old", "ann");
  await server.follow("ann", "bob");
  const { id: first } = await server.publish("ann", { text: "before" });
  await server.call("PUT", "/v1/users/ann", { name: "Ann", private: true });
  const [old, bob] = [await Phone.open(t, server, "old"), await Phone.open(t, server, "bob")];
  await old.shows("who follows already goes on", (items) => items.length === 1);
  for (const reader of ["bob", "cid", "dan", "bob"]) assert.deepEqual(await ask(server, reader), ASKED, reader);
  assert.deepEqual(await ask(server, "old"), FOLLOWS);
  assert.deepEqual(await names(server, "ann/requests"), ["dan", "cid", "bob"]);
  const first_page = await server.call("GET", "/v1/users/ann/requests?limit=2");
  const rest = await server.call("GET", `/v1/users/ann/requests?limit=2&cursor=${first_page.next}`);
  assert.deepEqual([first_page.users.length, rest.users.map(({ user }) => user), rest.next], [2, ["bob"], null]);
  const own = { token: await server.token("ann") };
  assert.equal((await server.call("GET", "/v1/users/ann/requests", undefined, own)).users.length, 3);
  const { id: second } = await server.publish("ann", { text: "while bob waits" });
  await old.shows("the second", (items) => items.length === 2);
  const lists = async () => [await names(server, "ann/followers"), await names(server, "bob/following"), await names(server, "bob/mutual")];
  assert.deepEqual(await lists(), [["old"], [], []]);
  assert.equal((await server.call("GET", "/v1/authors/ann")).followers, 1);
  assert.deepEqual(await server.feed("bob"), []);

  await server.call("PUT", "/v1/users/ann/followers/bob");
  await bob.shows("what was published before", (items) => items.length === 2);
  assert.deepEqual(bob.feed.items().map(({ id }) => id), [second, first]);
  assert.deepEqual(await lists(), [["bob", "old"], ["ann"], ["ann"]]);
  await server.call("PUT", "/v1/users/ann/followers/bob");
  await server.call("DELETE", "/v1/users/ann/requests/cid");
  await server.call("DELETE", "/v1/users/ann/requests/cid");
  await server.unfollow("dan", "ann");
  assert.deepEqual(await names(server, "ann/requests"), []);
  for (const reader of ["cid", "dan", "nobody"]) {
    const { status, body } = await server.request("PUT", `/v1/users/ann/followers/${reader}`);
    assert.deepEqual([status, body.type], [404, "/problems/not-found"], reader);
  }
  await server.call("DELETE", "/v1/users/ann/requests/bob");
  assert.deepEqual(await names(server, "ann/followers"), ["bob", "old"], "who follows is refused no more");

  await server.unfollow("bob", "ann");
  await bob.shows("nothing", (items) => items.length === 0);
  assert.deepEqual(await ask(server, "bob"), ASKED, "who has left asks again");
  const op = (op, user) => ({ op, user, author: "ann" });
  const { results } = await server.call("POST", "/v1/follows/batch", { ops: [op("follow", "eve"), op("follow", "old"), op("unfollow", "bob")] });
  assert.deepEqual(results.map(({ status, following, pending }) => [status, following, pending]), [
    [202, false, true],
    [200, true, undefined],
    [200, false, undefined],
  ]);
  assert.deepEqual(await names(server, "ann/requests"), ["eve"]);
});

test("s9: who is asked is told, and so is who was accepted; what was refused or taken back goes", async (t) => {
  const server = await Home.start(t, { config: '[notify]\nrequest = "asked"\naccept = "accepted"\nfollow = "followed"\n' });
  await server.call("PUT", "/v1/users/ann", { private: true });
  const [ann, bob] = [await Phone.open(t, server, "ann"), await Phone.open(t, server, "bob")];
  const says = (items) => items.map(({ kind, author }) => `${kind} ${author}`).join();
  for (const end of ["/v1/users/ann/requests/bob", "/v1/users/bob/following/ann"]) {
    assert.deepEqual(await ask(server, "bob"), ASKED);
    await ann.shows("who asks", (items) => says(items) === "asked bob");
    await server.call("DELETE", end);
    await ann.shows("nothing", (items) => items.length === 0);
  }
  await ask(server, "bob");
  await server.call("PUT", "/v1/users/ann/followers/bob");
  await bob.shows("that ann has accepted", (items) => says(items) === "accepted ann");
  await server.drained();
  assert.equal(says(await server.feed("ann")), "asked bob", "a follow that was asked for is told once");
});

test("s9: a block ends a request, and who is blocked is not told", async (t) => {
  const server = await Home.start(t);
  await server.call("PUT", "/v1/users/ann", { private: true });
  for (const [owner, other] of [["ann", "bob"], ["bob", "ann"]]) {
    assert.deepEqual(await ask(server, "bob"), ASKED);
    await server.call("PUT", `/v1/users/${owner}/blocked/${other}`);
    assert.deepEqual([await ask(server, "bob"), await names(server, "ann/requests")], [ASKED, []]);
    await server.call("DELETE", `/v1/users/${owner}/blocked/${other}`);
    assert.deepEqual(await names(server, "ann/requests"), []);
  }
});

test("s9: when an account is private no more, all who have asked follow; what is said of a user changes nothing of that", async (t) => {
  const server = await Home.start(t);
  await server.call("PUT", "/v1/users/ann", { private: true });
  const { id } = await server.publish("ann", { text: "one" });
  const readers = Array.from({ length: 1201 }, (_, n) => `r${n}`);
  for (let at = 0; at < readers.length; at += 1000) {
    const ops = readers.slice(at, at + 1000).map((user) => ({ op: "follow", user, author: "ann" }));
    const { results } = await server.call("POST", "/v1/follows/batch", { ops });
    assert.ok(results.every(({ status }) => status === 202));
  }
  await server.call("PUT", "/v1/users/ann", { name: "Ann" });
  await server.call("DELETE", "/v1/users/ann");
  assert.deepEqual(await server.call("GET", "/v1/users/ann"), { user: "ann", private: true }, "she stays private");
  assert.deepEqual(await ask(server, "late"), ASKED);
  await server.call("PUT", "/v1/users/ann", { name: "Ann", private: false });
  assert.deepEqual(await server.call("GET", "/v1/users/ann"), { user: "ann", name: "Ann" });
  assert.deepEqual(await names(server, "ann/requests"), []);
  assert.equal((await server.call("GET", "/v1/authors/ann")).followers, readers.length + 1);
  const phone = await Phone.open(t, server, "r1200");
  await phone.shows("the item", (items) => items.length === 1 && items[0].id === id);
  assert.deepEqual(await ask(server, "new"), FOLLOWS);
});

test("s9: nobody is private and followed by everyone", async (t) => {
  const server = await Home.start(t);
  await server.call("PUT", "/v1/users/ann", { private: true });
  const refused = [
    await server.request("PUT", "/v1/authors/ann", { class: "everyone" }),
    (await server.call("PUT", "/v1/authors/all", { class: "everyone" }), await server.request("PUT", "/v1/users/all", { name: "All", private: true })),
    await server.request("PUT", "/v1/users/bob", { private: "yes" }),
  ];
  assert.deepEqual(refused.map(({ status }) => status), [422, 422, 422]);
  assert.match(refused[0].body.detail, /ann cannot be private and have the class everyone/);
  assert.equal((await server.request("GET", "/v1/users/all")).status, 404, "nothing of it was said");
});
