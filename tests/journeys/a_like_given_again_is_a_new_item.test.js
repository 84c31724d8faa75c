// Line 13 of the trial: a like is taken back and given again with its foreign id. The second like is an item of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

test("a like that was taken back and is given again is a new item, and its follower sees it", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const like = { author: "bob", body: { likes: "post 42" }, foreign_id: "like:bob:42" };
  const first = await server.request("POST", "/v1/items", like);
  assert.equal(first.status, 201);
  assert.equal((await server.request("POST", "/v1/items", like)).status, 200, "a repeat is the same like");
  await phone.shows("the like", (items) => items.length === 1);

  await server.call("DELETE", `/v1/items/foreign:${like.foreign_id}`);
  await phone.shows("nothing", (items) => items.length === 0);
  const again = await server.request("POST", "/v1/items", like);
  assert.equal(again.status, 201, JSON.stringify(again.body));
  assert.notEqual(again.body.id, first.body.id);
  await phone.shows("the second like", ([item]) => item?.id === again.body.id);
  await phone.agrees();
  assert.equal((await server.call("GET", `/v1/items/foreign:${like.foreign_id}`)).id, again.body.id);
});
