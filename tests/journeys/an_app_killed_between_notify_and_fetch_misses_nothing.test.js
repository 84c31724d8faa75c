import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

for (const fetchBy of ["history", "changes"]) {
  test(`an app killed between notify and fetch misses nothing (it fetches by ${fetchBy})`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    const killed = await Phone.open(t, server, "ann", { device: "ios-1", deliver: "notify", fetchBy });
    await killed.subscribed();
    await server.publish("bob", { text: "seen" });
    await killed.shows("the first post", (items) => items.length === 1);
    await killed.fetched(); // the subscription may have brought the post, and the fetch for its notification may still run

    let stored = null;
    killed.onPush = () => {
      stored ??= killed.stored; // the app stores what it has applied, not the SDK's offset
      killed.close();
    };
    await server.publishMany("bob", 20, 2);
    await killed.waitFor("the notification", () => stored);
    assert.equal(killed.feed.items().length, 1, "it was told, and died before it fetched");

    const next = await Phone.open(t, server, "ann", { device: "ios-1", deliver: "notify", fetchBy, stored });
    await next.shows("every post", (items) => items.length === 21);
    assert.equal(next.reloads, 0, "by its position alone");
    await next.agrees();
  });
}
