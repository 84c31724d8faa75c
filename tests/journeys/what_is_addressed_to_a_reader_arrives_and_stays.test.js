import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

for (const deliver of ["items", "notify"]) {
  test(`a direct message arrives, survives an unfollow and goes when it is deleted, in ${deliver} mode`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, server, "ann", { deliver });
    const other = await Phone.open(t, server, "eve", { deliver });
    await Promise.all([phone.subscribed(), other.subscribed()]);
    await server.publish("bob", { text: "to all" });
    const direct = await server.publish("bob", { text: "psst" }, { audience: { users: ["ann"] } });
    assert.equal(direct.outbox_seq, null);
    await phone.shows("both", (items) => items.length === 2 && items.some(({ id, direct: is }) => is && id === direct.id));

    await server.unfollow("ann", "bob");
    await phone.shows("the direct one alone", (items) => items.length === 1 && items[0].id === direct.id);
    await server.call("PATCH", `/v1/items/${direct.id}`, { body: { text: "psst!" } });
    await phone.shows("the edit", ([item]) => item.body.text === "psst!");
    await phone.agrees();

    await phone.sleep();
    const later = await server.publish("bob", { text: "are you there?" }, { audience: { users: ["ann", "joe"] } });
    await server.drained();
    await phone.wake();
    await phone.shows("what was sent meanwhile", (items) => items.some(({ id }) => id === later.id));
    await server.call("DELETE", `/v1/items/${direct.id}`);
    await phone.shows("the later one alone", (items) => items.length === 1 && items[0].id === later.id);
    await phone.agrees();
    await other.agrees();
    assert.deepEqual(other.feed.items(), [], "nobody else has seen any of it");
  });
}
