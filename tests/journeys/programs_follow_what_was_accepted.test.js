import assert from "node:assert/strict";
import { test } from "node:test";

import { Follower } from "../actors/follower.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

/** A `GET /v1/events` that is refused. */
const refused = async (server, query, headers = {}) => (await server.request("GET", `/v1/events${query}`, undefined, { headers })).body;

test("a program is told of each accepted write once, with names, ids and versions", async (t) => {
  const server = await Server.start(t);
  const follower = await Follower.open(t, server);
  const { id } = await server.publish("ann.smith", { text: "one" }, { foreign_id: "post/1" });
  await server.publish("ann.smith", { text: "one" }, { foreign_id: "post/1" });
  const other = await server.request("POST", "/v1/items", { author: "ann.smith", body: { text: "two" }, foreign_id: "post/1" });
  assert.equal(other.status, 409);
  await server.call("PATCH", `/v1/items/${id}`, { body: { text: "edited" } });
  assert.equal((await server.request("PATCH", `/v1/items/${id}`, { body: 1 }, { headers: { "if-match": '"7"' } })).status, 412);
  await server.follow("bob", "ann.smith");
  await server.follow("bob", "ann.smith");
  await server.call("PUT", "/v1/users/bob/muted/ann.smith");
  await server.call("PUT", "/v1/authors/ann.smith", { class: "pull" });
  await server.unfollow("bob", "ann.smith");
  await server.call("DELETE", `/v1/items/${id}`);
  await until("the delete is told", () => follower.events.length === 7, { seen: () => follower.told });

  const bare = follower.events.map(({ v, id: _, at, ...rest }) => (assert.deepEqual([v, typeof at], [1, "number"]), rest));
  const author = "ann.smith";
  assert.deepEqual(bare, [
    { kind: "publish", author, item: id, version: 1, foreign_id: "post/1" },
    { kind: "edit", author, item: id, version: 2 },
    { kind: "follow", author, reader: "bob" },
    { kind: "mute", user: "bob", other: author },
    { kind: "classify", author, class: "pull" },
    { kind: "unfollow", author, reader: "bob" },
    { kind: "delete", author, item: id },
  ]);
});

test("a program that goes on from the last id misses nothing and gets nothing twice, whoever was killed meanwhile", async (t) => {
  const server = await Server.start(t);
  const follower = await Follower.open(t, server);
  const authors = ["ann", "bob", "cem"];
  const posts = async (from, to) => {
    for (let n = from; n <= to; n += 1) for (const author of authors) await server.publish(author, n, { foreign_id: `${author}/${n}` });
  };
  await posts(1, 20);
  await server.kill();
  await server.start();
  await posts(21, 40);
  await until("the same stream has gone on", () => follower.events.length === 120);
  assert.ok(follower.connections > 1, "the client has come again by itself");
  follower.close();
  await posts(41, 60);
  await server.kill();
  await server.start();
  const later = await Follower.open(t, server, { after: follower.last });
  await until("the rest is told", () => later.events.length >= 60);

  const all = [...follower.events, ...later.events];
  assert.equal(new Set(all.map(({ id }) => id)).size, 180);
  for (const author of authors) {
    const own = all.filter((event) => event.author === author).map(({ foreign_id }) => foreign_id);
    assert.deepEqual(own, Array.from({ length: 60 }, (_, i) => `${author}/${i + 1}`), "in the author's order");
  }
});

test("an id from which the log cannot go on is 410, and what is no id is 400", async (t) => {
  const server = await Server.start(t, { config: "[events]\nkept_mb = 1\n" });
  const beginning = await Follower.open(t, server);
  assert.equal(beginning.last, "0-0");
  await server.publish("ann", 1);
  await until("the first is told", () => beginning.events.length === 1);
  const first = beginning.last;
  const [at, number] = first.split("-");
  for (const gone of [`${Number(at) + 1}-${number}`, `${at}-${Number(number) + 1}`]) {
    const problem = await refused(server, `?after=${gone}`);
    assert.deepEqual([problem.status, problem.type], [410, "/problems/gone"]);
  }
  for (const wrong of ["?after=x", "?after=7", "?before=1"]) assert.equal((await refused(server, wrong)).status, 400, wrong);
  assert.equal((await refused(server, "", { "last-event-id": "x" })).status, 400);
  beginning.close();

  // A MiB holds 4096 events.
  await server.publishMany("ann", 4200);
  assert.equal((await refused(server, `?after=${first}`)).status, 410, "it was cut off");
  assert.equal((await refused(server, "?after=0-0")).status, 410);
});

test("a stream takes an API key, and ends when the server is told to stop", async (t) => {
  const server = await Server.start(t);
  const token = await server.token("ann");
  assert.equal((await server.request("GET", "/v1/events", undefined, { token })).status, 403);
  await Follower.open(t, server);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});
