import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

for (const deliver of ["items", "notify"]) {
  test(`an edit, a delete, an unfollow and a follow arrive live, in ${deliver} mode`, async (t) => {
    const server = await Home.start(t);
    await server.follow("ann", "bob");
    await server.follow("ann", "cyd");
    const phone = await Phone.open(t, server, "ann", { deliver });
    await phone.subscribed();
    const first = await server.publish("bob", { text: "one" });
    const second = await server.publish("bob", { text: "two" });
    await server.publish("cyd", { text: "three" });
    await phone.shows("three posts", (items) => items.length === 3);

    await server.call("PATCH", `/v1/items/${first.id}`, { body: { text: "one, edited" } });
    const edited = (item) => item.id === first.id && item.body.text === "one, edited" && item.version === 2;
    await phone.shows("the edit", (items) => items.some(edited));
    const { versions } = await server.call("GET", `/v1/items/${first.id}/versions`);
    assert.deepEqual(versions.map(({ version, body }) => [version, body.text]), [[1, "one"]], "what it said before");
    const token = await server.token("ann");
    await assert.rejects(server.call("GET", `/v1/items/${first.id}/versions`, undefined, { token }), /40[34]/);

    await server.call("DELETE", `/v1/items/${second.id}`);
    await phone.shows("the delete", (items) => items.every((item) => item.id !== second.id));

    await server.unfollow("ann", "cyd");
    await phone.shows("the unfollow", (items) => items.every((item) => item.author === "bob"));

    await server.follow("ann", "cyd");
    await phone.shows("what a follow brings back", (items) => items.some((item) => item.author === "cyd"));

    const ops = phone.ops.filter((op) => op !== "add");
    assert.deepEqual(ops.filter((op, i) => op !== ops[i - 1]), ["update", "delete", "forget"]);
    assert.equal(phone.reloads, 1);
    await phone.agrees();
  });
}

test("i11_an_item_deleted_while_the_phone_was_away_is_gone_when_it_comes_back", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const known = await server.publish("bob", { text: "known" });
  await phone.shows("the post", (items) => items.length === 1);

  await phone.sleep();
  const unseen = await server.publish("bob", { text: "never seen" });
  const kept = await server.publish("bob", { text: "kept" });
  await server.call("DELETE", `/v1/items/${known.id}`);
  await server.call("DELETE", `/v1/items/${unseen.id}`);
  await server.drained();
  await phone.wake();

  await phone.agrees();
  assert.deepEqual(phone.feed.items().map((item) => item.id), [kept.id]);
});
