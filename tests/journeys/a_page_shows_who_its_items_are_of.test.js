import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const put = (server, user, person) => server.call("PUT", `/v1/users/${user}`, person);

test("s7: an app shows names, a new name shows on its next page, and pushes are as they were", async (t) => {
  const server = await Home.start(t);
  await server.follow("bob", "ann");
  await server.follow("bob", "eve");
  await server.publish("ann", { text: "one" });
  await put(server, "ann", { name: "Ann", avatar: "/ann.png", attrs: { n: 1 } });
  const phone = await Phone.open(t, server, "bob");
  await phone.shows("one post", (items) => items.length === 1);
  assert.deepEqual(phone.feed.person("ann"), { name: "Ann", avatar: "/ann.png" });
  assert.equal(phone.feed.person("eve"), undefined);

  await put(server, "ann", { name: "Anna" });
  await server.publish("ann", { text: "two" });
  await phone.shows("two posts", (items) => items.length === 2);
  assert.deepEqual(phone.feed.person("ann"), { name: "Ann", avatar: "/ann.png" }, "a push brings no person");
  const { people } = (await phone.client.rpc("page", { limit: 20 })).data;
  assert.deepEqual(people, { ann: { name: "Anna" } });
  assert.deepEqual(await server.page("bob").then((page) => page.people), people, "the same by HTTP");
  const token = await server.token("bob");
  assert.deepEqual(await server.call("GET", "/v1/users/ann", undefined, { token }), { user: "ann", name: "Anna" });

  await put(server, "eve", { name: "王小明" });
  await server.kill();
  await server.start();
  await phone.subscribed();
  await server.publish("eve", { text: "three" });
  await phone.shows("three posts", (items) => items.length === 3);
  const after = (await phone.client.rpc("page", { limit: 20 })).data;
  assert.deepEqual(after.people, { ann: { name: "Anna" }, eve: { name: "王小明" } }, "it was durable when it was answered");
  await phone.agrees();
});
