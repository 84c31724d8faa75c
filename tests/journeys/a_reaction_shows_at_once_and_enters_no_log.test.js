import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const count = (wanted) => (items) => items.length === wanted;

const reaction = (id, kind, user) => `/v1/items/${id}/reactions/${kind}/${user}`;

/** All lines of the list of who reacted. */
async function listed(server, id) {
  const lines = [];
  for (let cursor = ""; ; ) {
    const page = await server.call("GET", `/v1/items/${id}/reactions?limit=7${cursor}`);
    lines.push(...page.reactions);
    if (page.next === null) return lines;
    cursor = `&cursor=${page.next}`;
  }
}

test("s2: what a phone did shows on its next page, and nothing of it comes as a change", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  await server.publishMany("bob", 2);
  await phone.shows("two posts", count(2));
  const { position } = phone;

  const [newest, oldest] = phone.feed.items();
  const token = await server.token("ann");
  const now = await server.call("PUT", reaction(newest.id, "like", "ann"), undefined, { token });
  assert.deepEqual(now, { id: newest.id, counts: { like: 1 }, own: ["like"] });
  await server.call("PUT", reaction(newest.id, "like", "eve"));
  const page = async () => (await phone.client.rpc("page", { channel: "feed" })).data.items;
  const [first, second] = await page();
  assert.deepEqual([first.id, first.counts, first.own], [newest.id, { like: 2 }, ["like"]]);
  assert.deepEqual([second.id, "counts" in second, "own" in second], [oldest.id, false, false]);

  await server.call("DELETE", reaction(newest.id, "like", "ann"), undefined, { token });
  const [after] = await page();
  assert.deepEqual([after.counts, "own" in after], [{ like: 1 }, false]);
  await server.publish("bob", { text: "after" });
  await phone.shows("what came after", ([item]) => item.body.text === "after");
  assert.equal(phone.position.offset, position.offset + 1, "the reactions were no changes");
  await server.call("DELETE", reaction(newest.id, "like", "eve"));
  await phone.agrees();
});

test("s1: counts are exact after the server was killed in the middle of reactions", async (t) => {
  const server = await Home.start(t);
  const { id } = await server.publish("bob", { text: "hot" });
  const users = Array.from({ length: 40 }, (_, n) => `user-${n}`);
  const answered = new Set();
  const give = async (user) => {
    await server.call("PUT", reaction(id, "like", user));
    answered.add(user);
  };
  for (let round = 0; round < 3; round += 1) {
    const begun = users.slice(round * 10, round * 10 + 20).map((user) => give(user).catch(() => {}));
    await begun[0];
    await server.kill();
    await Promise.all(begun);
    await server.start();
    const lines = await listed(server, id);
    const there = new Set(lines.map((line) => line.user));
    assert.equal(there.size, lines.length, "nobody is there twice");
    const { counts } = await server.call("GET", `/v1/items/${id}`);
    assert.equal(counts?.like ?? 0, lines.length, "the count is the size of the set");
    for (const user of answered) assert.ok(there.has(user), `${user} was answered`);
  }
  for (const user of users) await give(user);
  assert.deepEqual((await server.call("GET", `/v1/items/${id}`)).counts, { like: users.length });
});
