import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone, WAYS } from "../actors/phone.js";

for (const way of WAYS) {
  test(`a fresh process of the app goes on from the position it stored (${way})`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    const first = await Phone.open(t, server, "ann", { device: "ios-1", way });
    await server.publishMany("bob", 3);
    await first.shows("three posts", (items) => items.length === 3);
    const { stored } = first;
    first.close();

    await server.publishMany("bob", 150, 4);
    const second = await Phone.open(t, server, "ann", { device: "ios-1", way, stored });
    await second.shows("all posts", (items) => items.length === 153);

    assert.equal(second.reloads, 0, "it needed no page");
    assert.equal(second.pushes, 150);
    await second.agrees();
  });

  test(`a fresh process without a position starts from page one (${way})`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    await server.publishMany("bob", 250);
    await server.drained();
    const phone = await Phone.open(t, server, "ann", { way });
    await phone.subscribed();

    const { id } = await server.publish("bob", { text: "the next" });
    await phone.shows("the next post", ([newest]) => newest?.id === id);
    assert.equal(phone.reloads, 1);
    await phone.agrees();
  });

  test(`a position of before the store was lost is refused, and the app starts over (${way})`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    const first = await Phone.open(t, server, "ann", { way });
    await server.publishMany("bob", 3);
    await first.shows("three posts", (items) => items.length === 3);
    const stored = JSON.parse(first.stored);
    first.close();

    stored.position.epoch = "999999";
    const second = await Phone.open(t, server, "ann", { way, stored: JSON.stringify(stored) });
    await second.waitFor("page one is loaded", () => second.reloads === 1);
    await second.agrees();
  });
}
