// A profile is what an author has published, read by somebody: a user who looks around, a follower, one who is blocked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";

/** All pages of ann's profile, by the API key or a reader's token: the texts of the items, and the number of pages. */
async function walk(server, viewer, { limit = 3, token, between = async () => {} } = {}) {
  const texts = [];
  let [pages, cursor] = [0, undefined];
  do {
    const query = new URLSearchParams({ limit, ...(viewer && { viewer }), ...(cursor && { cursor }) });
    const page = await server.call("GET", `/v1/users/ann/outbox?${query}`, undefined, { token });
    texts.push(...page.items.map(({ body }) => body.text));
    cursor = page.next;
    pages += 1;
    await between(pages);
  } while (cursor);
  return { texts, pages };
}

const numbers = (from, to) => Array.from({ length: from - to + 1 }, (_, i) => `post ${from - i}`);

test("s13: a stranger, a follower and who is blocked see a profile each in their own way, page by page", async (t) => {
  const server = await Home.start(t);
  await server.follow("friend", "ann");
  await server.follow("follower", "ann");
  await server.call("PUT", "/v1/users/ann/lists/close/friend");
  for (let n = 1; n <= 9; n += 1) {
    const audience = n % 2 === 0 ? { audience: { lists: ["close"] } } : {};
    await server.publish("ann", { text: `post ${n}` }, audience);
  }
  const open = numbers(9, 1).filter((_, i) => i % 2 === 0);
  const token = async (user) => ({ token: await server.token(user) });

  const late = async (pages) => pages === 1 && server.publish("ann", { text: "late" });
  assert.deepEqual(await walk(server, "friend", { between: late }), { texts: numbers(9, 1), pages: 3 }, "what comes meanwhile shifts nothing");
  assert.deepEqual(await walk(server, "follower"), { texts: ["late", ...open], pages: 2 });
  assert.deepEqual((await walk(server, "stranger", { limit: 2 })).texts, ["late", ...open], "a profile is looked at before a follow");
  assert.deepEqual((await walk(server, undefined)).texts, ["late", ...numbers(9, 1)], "a backend reads all");
  assert.deepEqual((await walk(server, "friend", await token("friend"))).texts, ["late", ...numbers(9, 1)]);
  assert.deepEqual((await walk(server, "stranger", await token("stranger"))).texts, [], "a token reads what its reader sees");
  assert.deepEqual((await walk(server, undefined, await token("ann"))).texts, ["late", ...numbers(9, 1)], "one's own");

  for (const shield of ["friend/muted/ann", "ann/hidden/friend", "ann/blocked/friend", "friend/blocked/ann"]) {
    await server.call("PUT", `/v1/users/${shield}`);
    for (const options of [{}, await token("friend")]) {
      assert.deepEqual(await walk(server, "friend", options), { texts: [], pages: 1 }, shield);
    }
    await server.call("DELETE", `/v1/users/${shield}`);
    assert.equal((await walk(server, "friend")).texts.length, 10, `without ${shield}`);
  }
});

test("s13: pinned items stand first on a profile, and a user who scrolls sees each item once whatever is pinned meanwhile", async (t) => {
  const server = await Home.start(t);
  await server.follow("friend", "ann");
  await server.call("PUT", "/v1/users/ann/lists/close/friend");
  const posts = [];
  for (let n = 1; n <= 9; n += 1) {
    const audience = n === 2 ? { audience: { lists: ["close"] } } : {};
    posts.push(await server.publish("ann", { text: `post ${n}` }, { foreign_id: `post:${n}`, ...audience }));
  }
  const pin = (n, method = "PUT") => server.call(method, `/v1/users/ann/pins/foreign:post%3A${n}`);
  const first = async (viewer) => {
    const { items } = await server.call("GET", `/v1/users/ann/outbox?viewer=${viewer}`);
    return items.filter(({ pinned }) => pinned).map(({ body }) => body.text);
  };
  for (const n of [4, 2]) await pin(n);
  const others = (...not) => numbers(9, 1).filter((text) => !not.includes(text));
  const friend = { token: await server.token("friend") };
  for (const options of [{}, friend]) {
    assert.deepEqual((await walk(server, "friend", options)).texts, ["post 2", "post 4", ...others("post 2", "post 4")]);
  }
  assert.deepEqual((await walk(server, "stranger")).texts, ["post 4", ...others("post 2", "post 4")], "a pin shows nobody what is for others");
  assert.deepEqual((await walk(server, "stranger", { token: await server.token("stranger") })).texts, []);

  const meanwhile = async (page) => {
    if (page === 1) await pin(4, "DELETE");
    if (page === 1) await pin(3);
  };
  assert.deepEqual((await walk(server, "friend", { between: meanwhile })).texts, ["post 2", "post 4", ...others("post 2", "post 4")]);
  assert.deepEqual(await first("friend"), ["post 3", "post 2"]);
  await server.call("PUT", "/v1/users/friend/muted/ann");
  assert.deepEqual(await first("friend"), [], "and nothing beyond a shield");
  await server.call("DELETE", "/v1/users/friend/muted/ann");

  await server.call("PATCH", `/v1/items/${posts[2].id}`, { body: { text: "post 3, edited" }, rank: 1 });
  for (const n of [5, 6, 7]) await pin(n);
  const full = await server.request("PUT", "/v1/users/ann/pins/foreign:post%3A8");
  assert.deepEqual([full.status, full.body.detail.includes("5 other items are pinned")], [409, true], JSON.stringify(full.body));
  await server.call("DELETE", `/v1/items/${posts[5].id}`);
  await pin(8);
  const wanted = ["post 8", "post 7", "post 5", "post 3, edited", "post 2"];
  assert.deepEqual(await first("friend"), wanted);
  await server.kill();
  await server.start();
  assert.deepEqual(await first("friend"), wanted, "after a crash too");
  const exported = await fetch(`${server.url}/v1/export`, { headers: { authorization: `Bearer ${server.key}` } });
  const lines = (await exported.text()).split("\n").filter((line) => line.includes('"type":"pins"'));
  assert.deepEqual(lines.map((line) => JSON.parse(line)), [{ type: "pins", user: "ann", items: [8, 7, 5, 3, 2].map((n) => posts[n - 1].id) }]);
});

test("s13: what was deleted or edited shows so at once, and own is the viewer's", async (t) => {
  const server = await Home.start(t);
  await server.follow("bob", "ann");
  const [first, second] = [await server.publish("ann", { text: "first" }), await server.publish("ann", { text: "second" })];
  const { token } = { token: await server.token("bob") };
  await server.call("PUT", `/v1/items/${first.id}/reactions/like/bob`, undefined, { token });
  await server.call("PATCH", `/v1/items/${first.id}`, { body: { text: "edited" } });
  await server.call("DELETE", `/v1/items/${second.id}`);
  for (const as of [{}, { token }]) {
    const { items, next } = await server.call("GET", "/v1/users/ann/outbox?viewer=bob", undefined, as);
    assert.deepEqual([items.length, next, items[0].body.text, items[0].own, items[0].version], [1, null, "edited", ["like"], 2]);
  }
  const { items } = await server.call("GET", "/v1/users/ann/outbox?viewer=cid");
  assert.deepEqual([items[0].counts, items[0].own], [{ like: 1 }, undefined]);
  const other = await server.request("GET", "/v1/users/ann/outbox?viewer=cid", undefined, { token });
  assert.equal(other.status, 403);
});
