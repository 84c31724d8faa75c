import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const count = (wanted) => (items) => items.length === wanted;

const repost = (server, author, ref) => server.publish(author, { text: "look" }, { ref });

/** What the page of a phone shows of the original of its first item. */
async function original(phone) {
  const [item] = (await phone.client.rpc("page", { channel: "feed" })).data.items;
  return item.ref_gone ? "gone" : item.ref_item;
}

test("s8: a page shows what a repost reposts, as it is now and as this reader may see it", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "eve");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const { id } = await server.publish("bob", { text: "news" });
  await server.call("PUT", "/v1/users/bob", { name: "Bob" });
  const { id: reposted } = await repost(server, "eve", id);
  await phone.shows("the repost", count(1));
  const [live] = phone.feed.items();
  assert.deepEqual([live.id, live.ref, "ref_item" in live], [reposted, id, false], "a change has the ref alone");

  const page = (await phone.client.rpc("page", { channel: "feed" })).data;
  assert.deepEqual([page.items[0].ref_item.author, page.items[0].ref_item.body], ["bob", { text: "news" }]);
  assert.deepEqual(page.people, { bob: { name: "Bob" } });

  await server.call("PATCH", `/v1/items/${id}`, { body: { text: "newer" } });
  assert.deepEqual((await original(phone)).body, { text: "newer" });
  const token = await server.token("ann");
  const read = (what) => server.call("GET", what, undefined, { token });
  assert.deepEqual((await read(`/v1/items/${reposted}`)).ref_item.version, 2, "a phone that got a push reads it");

  for (const shield of ["bob/blocked/ann", "ann/muted/bob"]) {
    await server.call("PUT", `/v1/users/${shield}`);
    assert.equal(await original(phone), "gone", shield);
    await server.call("DELETE", `/v1/users/${shield}`);
    assert.deepEqual((await original(phone)).body, { text: "newer" }, shield);
  }

  const { position } = phone;
  await server.call("DELETE", `/v1/items/${id}`);
  assert.equal(await original(phone), "gone");
  assert.equal((await read("/v1/users/ann/feed")).items[0].ref_gone, true);
  await server.publish("eve", { text: "after" });
  await phone.shows("what came after", ([item]) => item.body.text === "after");
  assert.equal(phone.position.offset, position.offset + 1, "nothing that befell the original was a change");
});

test("s8: what is gone is not reposted, and a server that was killed knows what a repost names", async (t) => {
  const server = await Home.start(t);
  const { id } = await server.publish("bob", { text: "news" });
  const { id: reposted } = await repost(server, "eve", id);
  await server.kill();
  await server.start();
  assert.deepEqual((await server.call("GET", `/v1/items/${reposted}`)).ref_item.body, { text: "news" });
  await server.call("DELETE", `/v1/items/${id}`);
  await assert.rejects(repost(server, "eve", id), /no item .* to repost/);
  assert.equal((await server.call("GET", `/v1/items/${reposted}`)).ref_gone, true);
});
