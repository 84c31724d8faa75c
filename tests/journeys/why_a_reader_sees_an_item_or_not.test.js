// What `GET /v1/explain` says is what the reader's feed shows, for each reason that there is.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";

/** The verdict, the rule that decided, and whether the reader's feed has the item. */
async function explained(server, reader, { id }) {
  const { verdict, findings } = await server.call("GET", `/v1/explain?reader=${reader}&item=${id}`);
  const { items } = await server.page(reader, { limit: 100 });
  assert.equal(items.some((item) => item.id === id), verdict === "shown", `${reader}: ${JSON.stringify(findings)}`);
  return [verdict, findings.at(-1).rule];
}

for (const name of ["push", "pull"]) {
  test(`of the items of a ${name} author each reader is told the reason`, async (t) => {
    const server = await Home.start(t);
    await server.call("PUT", "/v1/authors/ann", { class: name });
    const before = await server.publish("ann", { text: "before the follow" });
    for (const reader of ["bob", "cyd", "dan"]) await server.follow(reader, "ann");
    const item = await server.publish("ann", { text: "hello" });
    const direct = await server.publish("ann", { text: "psst" }, { audience: { users: ["bob"] } });
    await server.drained();
    for (const reader of ["bob", "cyd", "dan", "eve"]) await server.page(reader);

    assert.deepEqual(await explained(server, "bob", item), ["shown", "floor"]);
    assert.deepEqual(await explained(server, "bob", before), ["shown", "floor"], "a follow brings the newest");
    assert.deepEqual(await explained(server, "eve", item), ["hidden", "edge"]);
    assert.deepEqual(await explained(server, "bob", direct), ["shown", "floor"]);
    assert.deepEqual(await explained(server, "cyd", direct), ["hidden", "audience"]);

    for (const path of ["/v1/users/cyd/muted/ann", "/v1/users/ann/hidden/dan", "/v1/users/ann/blocked/bob"]) await server.call("PUT", path);
    await server.unfollow("eve", "ann");
    await server.drained();
    assert.deepEqual(await explained(server, "cyd", item), ["hidden", "shield"]);
    assert.deepEqual(await explained(server, "dan", item), ["hidden", "shield"]);
    assert.deepEqual(await explained(server, "bob", item), ["hidden", "shield"]);
    assert.deepEqual(await explained(server, "bob", direct), ["shown", "floor"], "what was addressed before a block stays");
    const blocked = await server.publish("ann", { text: "psst" }, { audience: { users: ["bob"] } });
    await server.drained();
    assert.deepEqual(await explained(server, "bob", blocked), ["hidden", "audience"]);

    await server.call("DELETE", `/v1/items/${item.id}`);
    const dead = await server.request("GET", `/v1/explain?reader=bob&item=${item.id}`);
    assert.deepEqual([dead.status, dead.body.detail.includes("deleted")], [404, true]);
  });
}

test("a sleeper without an inbox is told what the next read builds, and the question builds nothing", async (t) => {
  const server = await Home.start(t);
  await server.follow("bob", "ann");
  const item = await server.publish("ann", { text: "hello" });
  await server.drained();
  const inboxes = async () => (await server.call("GET", "/v1/stats")).inboxes.inboxes;
  const there = await inboxes();
  const { verdict, findings } = await server.call("GET", `/v1/explain?reader=bob&item=${item.id}`);
  assert.deepEqual([verdict, findings.at(-1).rule], ["shown", "floor"]);
  assert.equal(await inboxes(), there);
});
