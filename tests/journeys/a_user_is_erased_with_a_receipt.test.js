import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const POSTS = 450;

const DEATHS = ["erasure-planned:1", "erasure-carried-out:1", "erasure-planned:3", "erasure-carried-out:4"];

const texts = (items) => items.map(({ body }) => body.text);

/** All that is known of a user, as lines; without what is left of deleted items, which are numbers and times. */
async function known(server, user) {
  const answer = await fetch(`${server.url}/v1/users/${user}/export`, { headers: { authorization: `Bearer ${server.key}` } });
  assert.equal(answer.status, 200);
  const lines = (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return lines.filter(({ type, deleted }) => type !== "delete" && !deleted);
}

const count = (lines) => lines.reduce((all, { type }) => ({ ...all, [type]: (all[type] ?? 0) + 1 }), {});

/** A server with ann, who has written and said much, and with readers of hers. */
async function populated(t) {
  const server = await Home.start(t);
  for (const [reader, author] of [["bob", "ann"], ["bob", "cid"], ["cid", "ann"], ["ann", "cid"]]) await server.follow(reader, author);
  await server.publishMany("ann", POSTS);
  const { id } = await server.publish("cid", { text: "of cid" });
  await server.publish("ann", { text: "to bob" }, { audience: { users: ["bob"] } });
  await server.publish("cid", { text: "to ann" }, { audience: { users: ["ann"] } });
  for (const [user, member] of [["ann", "bob"], ["cid", "ann"]]) await server.call("PUT", `/v1/users/${user}/lists/close/${member}`);
  await server.publish("cid", { text: "to some" }, { audience: { lists: ["close"] } });
  const say = (author, text, more) => server.call("POST", `/v1/items/${id}/comments`, { author, body: { text }, ...more });
  const said = await say("ann", "first");
  await say("cid", "answer", { reply_to: said.id });
  await say("ann", "alone");
  for (const user of ["ann", "bob"]) await server.call("PUT", `/v1/items/${id}/reactions/like/${user}`);
  await server.call("PUT", "/v1/users/ann", { name: "Ann", private: true });
  await server.call("PUT", "/v1/users/gus", { private: true });
  for (const [reader, author] of [["fay", "ann"], ["ann", "gus"]]) await server.call("PUT", `/v1/users/${reader}/following/${author}`);
  await server.call("PUT", "/v1/users/ann/devices/d", { platform: "fcm", push_token: "t" });
  await server.call("PUT", "/v1/users/ann/blocked/eve");
  await server.call("PUT", "/v1/users/dan/muted/ann");
  await server.drained();
  return { server, id };
}

test("a user is erased through four deaths of the worker; phones drop the items, and the receipt is exact", async (t) => {
  const { server, id } = await populated(t);
  const phone = await Phone.open(t, server, "bob");
  await phone.shows("what ann and cid have posted", (items) => items.some(({ author }) => author === "ann"));
  const token = await server.token("ann");
  const lines = count(await known(server, "ann"));
  const wants = { private: 1, item: POSTS + 1, follow: 3, request: 2, shield: 2, comment: 2, reaction: 1, person: 1, device: 1, addressed: 2, listed: 2 };
  assert.deepEqual(lines, wants);

  const worker = server.workers?.[0] ?? server;
  const others = server.workers?.slice(1) ?? [];
  for (const member of [worker, ...others]) await member.stop();
  const erase = () => server.call("POST", "/v1/users/ann/erase");
  if (worker !== server) await erase();
  for (const failpoint of DEATHS) {
    await worker.start({ failpoint });
    // In one process the answer may be lost with it. To ask again is harmless.
    if (worker === server && !server.ended) await erase().catch(() => undefined);
    await until("the worker has killed itself", () => worker.ended, { seen: () => worker.log() });
    assert.equal(worker.ended.signal, "SIGKILL", failpoint);
  }
  await worker.start();
  for (const member of others) await member.start();

  const accepted = await server.call("GET", "/v1/erasures/1");
  assert.equal(accepted.user, "ann");
  const receipt = await until("the erasure is finished", async () => {
    const shown = await server.call("GET", "/v1/erasures/1");
    return shown.finished_at !== null && shown;
  });
  const nothing = { following: 1, followers: 2, requests: 2, shields: 1, shielded: 1, audiences: 1, listed: 1, listing: 1, person: 1, devices: 1, notices: 0, seen: 0, addressed: 1, keys: 0 };
  assert.deepEqual(receipt.removed, { items: POSTS, direct_items: 1, comments: 2, reactions: 1, ...nothing });
  assert.ok(receipt.finished_at >= receipt.accepted_at);

  await phone.shows("what cid has posted", (items) => texts(items).join() === "of cid");
  // Counts come with pages, and the phone has that of before.
  assert.deepEqual(phone.feed.items().map((item) => item.id), (await server.feed("bob")).map((item) => item.id));
  assert.deepEqual(count(await known(server, "ann")), { revoked: 1 });
  assert.equal((await server.request("GET", "/v1/users/ann/feed", undefined, { token })).status, 401);
  assert.deepEqual((await server.page("ann")).items, []);
  assert.deepEqual((await server.call("GET", "/v1/users/cid/followers")).users.map(({ user }) => user), ["bob"]);
  const { comments } = await server.call("GET", `/v1/items/${id}/comments?order=oldest`);
  assert.deepEqual(comments.map(({ deleted, author }) => [deleted ?? false, author]), [[true, undefined], [false, "cid"]]);
  assert.deepEqual((await server.call("GET", `/v1/items/${id}`)).counts, { comments: 1, like: 1 });

  // Who comes back under the id begins anew.
  const again = await server.token("ann");
  assert.equal((await server.request("GET", "/v1/users/ann/feed", undefined, { token: again })).status, 200);
  await server.follow("bob", "ann");
  await server.publish("ann", { text: "anew" });
  await phone.shows("what ann posts anew", (items) => texts(items).join() === "anew,of cid");
  const second = await server.call("POST", "/v1/users/ann/erase");
  assert.notEqual(second.id, receipt.id);
  await until("the second erasure is finished", async () => (await server.call("GET", `/v1/erasures/${second.id}`)).finished_at !== null);
  await phone.shows("what cid has posted, again", (items) => texts(items).join() === "of cid");
  assert.equal((await server.request("POST", "/v1/users/nobody/erase")).status, 404);
});
