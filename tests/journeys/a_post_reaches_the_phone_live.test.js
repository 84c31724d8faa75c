import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

for (const deliver of ["items", "notify"]) {
  test(`a post reaches the phone live, in ${deliver} mode`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, server, "ann", { deliver });
    await phone.subscribed();

    const { id } = await server.publish("bob", { text: "hello" });
    await phone.shows("the post", ([first]) => first?.id === id);

    assert.deepEqual(phone.feed.items()[0].body, { text: "hello" });
    assert.ok(phone.pushes > 0, "it was pushed");
    await phone.agrees();
    assert.equal(phone.reloads, 1, "page one was loaded once, at the start");
  });
}

test("a reader sees nothing of an author who is not followed", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();

  await server.publish("eve", { text: "not for ann" });
  const { id } = await server.publish("bob", { text: "for ann" });
  await phone.shows("the post", (items) => items.some((item) => item.id === id));

  await phone.agrees();
  assert.deepEqual(phone.feed.items().map((item) => item.author), ["bob"]);
});

test("the thousand posts of a burst arrive in order, each once", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();

  await server.publishMany("bob", 1000);
  await phone.shows("all of them", (items) => items.length === 1000);

  assert.equal(phone.pushes, 1000);
  await phone.agrees();
});
