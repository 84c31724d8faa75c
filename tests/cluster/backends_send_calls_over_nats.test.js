import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Bus } from "../actors/bus.js";
import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const OPEN = "[intake]\nopen = true\n";

/** The gateway that carries out the calls of FEED_IN. */
const taker = (cluster) =>
  until("a gateway carries out calls", () => cluster.gateways.find((gateway) => !gateway.ended && gateway.said(/carries out what backends put into FEED_IN/)));

/** The texts that each author has posted, in the order in which a reader's log got them. */
const posted = async (cluster, reader) => {
  const texts = {};
  for (const { op, item } of await cluster.changes(reader)) if (op === "add") (texts[item.author] ??= []).push(item.body.text);
  return texts;
};

const numbers = (count) => Array.from({ length: count }, (_, i) => `${i + 1}`);

test("what a backend puts into NATS reaches a phone as if it came by HTTP", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN });
  const bus = await Bus.open(t, cluster);
  await bus.put("follow.ann.bob%2Esmith");
  await bus.settled();
  const phone = await Phone.open(t, cluster, "ann", { device: "ios-1" });
  await phone.subscribed();

  await bus.put("publish", { author: "bob.smith", body: { text: "one" }, foreign_id: "post/1", kind: "post" });
  await bus.put("batch", { ops: [{ author: "bob.smith", body: { text: "two" }, id: "7" }, { author: "bob.smith", body: { text: "three" } }] });
  await bus.put("edit.foreign:post/1", { body: { text: "one, edited" } });
  await bus.put("delete.7");
  await phone.shows("the edit, without the deleted one", (items) => items.map(({ body }) => body.text).join() === "three,one, edited");
  await phone.agrees();

  await bus.put("follows", { ops: [{ op: "unfollow", user: "ann", author: "bob.smith" }] });
  await phone.shows("nothing", (items) => items.length === 0);
  await bus.put("follow.ann.bob%2Esmith");
  await phone.shows("the posts again", (items) => items.length === 2);
  await bus.put("unfollow.ann.bob%2Esmith");
  await phone.shows("nothing", (items) => items.length === 0);
  assert.deepEqual(await bus.refused(), []);
});

test("what surrounds items is put into NATS too, and a reaction does not overtake its item", async (t) => {
  const cluster = await Cluster.start(t, { config: `${OPEN}[feeds.picks]\nranked = true\n` });
  const bus = await Bus.open(t, cluster);
  const fans = numbers(20);
  const sent = fans.flatMap((n) => [
    ["publish", { author: `author-${n}`, body: { text: n }, foreign_id: `post/${n}` }],
    ...fans.map((fan) => [`react.foreign:post/${n}.like.fan-${fan}`]),
    [`comment.foreign:post/${n}`, { author: "fan-1", body: { text: `on ${n}` } }],
    [`unreact.foreign:post/${n}.like.fan-20`],
  ]);
  await Promise.all(sent.map(([subject, body]) => bus.put(subject, body)));
  await bus.settled();
  assert.deepEqual(await bus.refused(), [], "nothing came before the item that it names");
  for (const n of fans) assert.deepEqual((await cluster.call("GET", `/v1/items/foreign:post%2F${n}`)).counts, { like: 19, comments: 1 }, n);

  const phone = await Phone.open(t, cluster, "ann", { channel: "picks" });
  await phone.subscribed();
  const { id } = await cluster.call("GET", "/v1/items/foreign:post%2F1");
  await bus.put("rank.ann.picks", [{ id, rank: 1 }]);
  await phone.shows("the recommended item", (items) => items.length === 1 && items[0].id === id);
  await bus.put("pin.author-1.foreign:post/1");
  await bus.settled();
  assert.equal((await cluster.call("GET", "/v1/users/author-1/outbox")).items[0].pinned, true);
});

test("the posts and edits of an author keep their order, and none is lost or doubled, when the gateway that takes them is killed", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN });
  const bus = await Bus.open(t, cluster);
  const authors = ["bob", "eve", "joe"];
  for (const author of authors) await cluster.follow("ann", author);
  const killed = await taker(cluster);

  const half = async (from, to) => {
    for (let i = from; i <= to; i += 1) {
      for (const author of authors) {
        await bus.put("publish", { author, body: { text: `${i}` }, foreign_id: `${author}/${i}` });
        if (i % 20 === 0) await bus.put(`edit.foreign:${author}/${i}`, { body: { text: `${i} edited` } });
      }
    }
  };
  await half(1, 60);
  const killing = killed.kill();
  await half(61, 100);
  await killing;
  await bus.settled();
  assert.notEqual(await taker(cluster), killed);
  assert.deepEqual(await bus.refused(), [], "no edit came before its post");

  const other = cluster.gateways.find((gateway) => gateway !== killed);
  await other.drained();
  const texts = await posted(other, "ann");
  const edits = (await other.feed("ann")).filter(({ body }) => body.text.endsWith("edited"));
  for (const author of authors) assert.deepEqual(texts[author].map((text) => text.replace(" edited", "")), numbers(100), author);
  assert.equal(edits.length, 15);
});

test("a call that was carried out before the crash, and comes again, has no second effect", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN, gateways: 1, failpoint: "archive-committed:3" });
  const [gateway] = cluster.gateways;
  const bus = await Bus.open(t, cluster);
  await bus.put("follow.ann.bob");
  await bus.put("publish", { author: "bob", body: { text: "1" } }, { key: "first" });
  await bus.settled();
  await bus.put("batch", { ops: [{ author: "bob", body: { text: "2" } }, { author: "bob", body: { text: "3" } }] });
  await until("the gateway dies after the commit and before the ack", () => gateway.ended);
  assert.equal(await bus.waiting(), 1);
  await gateway.start();
  await bus.settled();
  await gateway.drained();
  assert.deepEqual((await posted(gateway, "ann")).bob, ["1", "2", "3"]);
  assert.deepEqual(await bus.refused(), []);
});

test("a key is known beyond what NATS remembers: the stream is lost, and the call has no second effect", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN, gateways: 1 });
  const bus = await Bus.open(t, cluster);
  const put = () => bus.put("publish", { author: "bob", body: 1 }, { key: "first" });
  await put();
  await bus.settled();
  assert.equal((await put()).duplicate, true, "NATS remembers");
  await bus.streams.streams.delete("FEED_IN");
  await until("the gateway has made the stream anew", () => bus.waiting().catch(() => null).then((waiting) => waiting === 0));
  assert.equal((await put()).duplicate, false, "NATS remembers nothing");
  await bus.settled();
  assert.equal((await cluster.call("GET", "/v1/users/bob/outbox")).items.length, 1);
  assert.deepEqual(await bus.refused(), []);
});

test("an edit with a version that was carried out before the crash is not refused when it comes again", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN, gateways: 1, failpoint: "archive-committed:2" });
  const [gateway] = cluster.gateways;
  const bus = await Bus.open(t, cluster);
  await bus.put("publish", { author: "bob", body: 1, id: "1" });
  await bus.settled();
  await bus.put("edit.1", { body: 2 }, { headers: { "If-Match": '"1"' } });
  await until("the gateway dies after the commit and before the ack", () => gateway.ended);
  await gateway.start();
  await bus.settled();
  const { body, version } = await gateway.call("GET", "/v1/items/1");
  assert.deepEqual([body, version, await bus.refused()], [2, 2, []]);

  await bus.put("edit.1", { body: 3 }, { headers: { "If-Match": '"1"' } });
  await bus.settled();
  assert.equal((await bus.refused())[0].problem.type, "/problems/version-mismatch", "another edit of that version is refused");
});

test("what is refused lies in FEED_REFUSED with its problem, and may be put again as it is", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN, gateways: 1, workers: 1 });
  const bus = await Bus.open(t, cluster);
  await bus.put("publish", "{", { key: "broken" });
  await bus.put("publish", { author: "bob", body: 1, colour: "x".repeat(100_000) }, { headers: { Trace: "7" } });
  await bus.put("post", {});
  await bus.put("delete.12345");
  await bus.put("publish", { author: "bob", body: 1 }, { headers: { "If-Match": '"1"' } });
  await bus.put("batch", { ops: [{ author: "bob", body: 1 }, { author: "b b", body: 2 }] }, { key: "two" });
  await bus.settled();
  const refused = await bus.refused();
  const types = refused.map(({ subject, problem }) => `${subject} ${problem.status} ${problem.type}`);
  assert.deepEqual(types.toSorted(), [
    "feed.refused.batch 422 /problems/invalid-field",
    "feed.refused.delete.12345 404 /problems/not-found",
    "feed.refused.post 404 /problems/no-such-route",
    "feed.refused.publish 400 /problems/bad-header",
    "feed.refused.publish 400 /problems/malformed-json",
    "feed.refused.publish 422 /problems/invalid-field",
  ]);
  const by = (subject, type) => refused.find((call) => call.subject === subject && call.problem.type === `/problems/${type}`);
  assert.equal(by("feed.refused.publish", "malformed-json").body, "{");
  assert.equal(by("feed.refused.publish", "malformed-json").header("Nats-Msg-Id"), "broken");
  const unknown = by("feed.refused.publish", "invalid-field");
  assert.deepEqual([unknown.header("Trace"), unknown.problem.detail], ["7", 'unknown field "colour"; known are "author", "body", "kind", "id", "foreign_id", "ref", "mentions", "published_at", "rank", "audience"']);
  const [operation] = refused.filter(({ subject }) => subject === "feed.refused.batch");
  assert.deepEqual([operation.body, operation.problem.pointer, operation.header("Nats-Msg-Id")], ['{"ops":[{"author":"b b","body":2}]}', "/ops/1/author", "two/1"]);

  const http = await cluster.request("POST", "/v1/items", { author: "b b", body: 2 });
  assert.equal(operation.problem.detail, http.body.detail, "the rules and their words are those of HTTP");
  const { items } = await cluster.call("GET", "/v1/users/bob/outbox");
  assert.equal(items.length, 1, "the other operation of the batch was carried out");

  await bus.put("batch", operation.body.replace("b b", "bea"), { key: operation.header("Nats-Msg-Id") });
  await bus.settled();
  assert.equal((await cluster.call("GET", "/v1/users/bea/outbox")).items.length, 1);
});

test("while PostgreSQL is away calls wait, and then all are carried out in their order", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN });
  const bus = await Bus.open(t, cluster);
  await cluster.follow("ann", "bob");
  await bus.put("publish", { author: "bob", body: { text: "1" } });
  await bus.settled();
  await cluster.postgres.kill();
  for (let i = 2; i <= 200; i += 1) await bus.put("publish", { author: "bob", body: { text: `${i}` } });
  assert.equal(await bus.waiting(), 199, "nothing is acknowledged");
  await cluster.postgres.restart();
  await bus.settled();
  await cluster.drained();
  assert.deepEqual((await posted(cluster, "ann")).bob, numbers(200));
  assert.deepEqual(await bus.refused(), []);
});

test("calls that a gateway holds while NATS and PostgreSQL are away go on in their order", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN });
  const bus = await Bus.open(t, cluster);
  await cluster.follow("ann", "bob");
  await taker(cluster);
  await cluster.postgres.kill();
  for (let i = 1; i <= 200; i += 1) await bus.put("publish", { author: "bob", body: { text: `${i}` } });
  await cluster.nats.restart();
  await cluster.postgres.restart();
  await bus.settled();
  await cluster.drained();
  assert.deepEqual((await posted(cluster, "ann")).bob, numbers(200));
});

test("a gateway that drains hands the calls over at once", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN });
  const bus = await Bus.open(t, cluster);
  await cluster.follow("ann", "bob");
  const first = await taker(cluster);
  const puts = numbers(200).map((text) => bus.put("publish", { author: "bob", body: { text } }));
  assert.deepEqual((await first.stop()).code, 0);
  await Promise.all(puts);
  await bus.settled();
  const second = await taker(cluster);
  assert.notEqual(second, first);
  await second.drained();
  assert.deepEqual((await posted(second, "ann")).bob, numbers(200));
});

test("a request to feed.call gets the answer that HTTP gives", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN, workers: 1 });
  const bus = await Bus.open(t, cluster);
  const item = { author: "bob", body: { text: "hello" }, foreign_id: "x" };
  const answer = await bus.call("publish", item, { key: "once" });
  assert.equal(answer.status, 201);
  assert.equal(answer.header("Location"), `/v1/items/${answer.body.id}`);
  const again = await bus.call("publish", item, { key: "once" });
  const http = await cluster.request("POST", "/v1/items", item, { headers: { "idempotency-key": "once" } });
  assert.deepEqual([again.status, again.body], [200, answer.body]);
  assert.deepEqual([http.status, http.body], [200, answer.body]);

  const edited = await bus.call("edit.foreign:x", { body: { text: "bye" } }, { headers: { "If-Match": '"1"' } });
  assert.deepEqual([edited.status, edited.body.version, edited.header("ETag")], [200, 2, '"2"']);
  assert.equal((await bus.call("follow.ann.bob")).status, 204);

  for (const wrong of [{ author: "b b", body: 1 }, { author: "bob" }, { author: "bob", body: 1, audience: "all" }]) {
    const [refused, asked] = [await bus.call("publish", wrong), await cluster.request("POST", "/v1/items", wrong)];
    assert.deepEqual([refused.status, refused.body], [asked.status, asked.body]);
    assert.equal(refused.header("Nats-Service-Error-Code"), "422");
    assert.equal(refused.header("Content-Type"), "application/problem+json");
  }
  assert.equal((await bus.call("like")).body.type, "/problems/no-such-route");
  assert.equal(await bus.waiting(), 0, "nothing of it is kept");
});

test("the rights that docs/nats.md gives are enough for Feedgate and for a backend, and give the backend nothing more", async (t) => {
  const guide = await readFile(fileURLToPath(new URL("../../docs/nats.md", import.meta.url)), "utf8");
  const [config] = guide.match(/^authorization \{[^]*?^\}/m);
  const cluster = await Cluster.start(t, { config: OPEN, gateways: 1, workers: 1, nats: { config, user: "feedgate:secret%20of%20feedgate" } });
  const shop = await Bus.open(t, cluster, { user: "shop", pass: "secret of shop", inboxPrefix: "_INBOX_shop" });
  const phone = await Phone.open(t, cluster, "ann", { device: "ios-1" });
  await phone.subscribed();
  assert.equal((await shop.call("follow.ann.bob")).status, 204);
  await shop.put("publish", { author: "bob", body: { text: "kept" } });
  await phone.shows("the post", (items) => items[0]?.body.text === "kept");
  await shop.put("publish", "{");
  const feedgate = await Bus.open(t, cluster, { user: "feedgate", pass: "secret of feedgate" });
  await feedgate.settled();
  assert.equal((await feedgate.refused())[0].problem.type, "/problems/malformed-json");

  const refusals = [];
  (async () => {
    for await (const { type, permissionContext } of shop.connection.status()) if (type === "error") refusals.push(permissionContext.subject);
  })();
  const forbidden = ["feed.work.fan-out.1", "feed.node.x", "feed.all.confirm", "feed.items", "feed.refused.publish", "feed.event.publish.ann", "$JS.API.STREAM.DELETE.FEED_IN"];
  for (const subject of forbidden) shop.connection.publish(subject, "{}");
  for (const subject of ["feed.>", "_INBOX.>"]) shop.connection.subscribe(subject);
  await until("NATS refuses all of it", () => refusals.length === forbidden.length + 2, { seen: () => refusals });
  assert.deepEqual(refusals, [...forbidden, "feed.>", "_INBOX.>"]);
});

test("a gateway that is stopped loses the calls to another, and repeats none of them when it goes on", async (t) => {
  const cluster = await Cluster.start(t, { config: OPEN });
  const bus = await Bus.open(t, cluster);
  await cluster.follow("ann", "bob");
  const stopped = await taker(cluster);
  const other = cluster.gateways.find((gateway) => gateway !== stopped);
  const puts = numbers(300).map((text) => bus.put("publish", { author: "bob", body: { text } }));
  await until("it has begun", async () => (await other.call("GET", "/v1/stats")).archive.items > 0);
  stopped.pause();
  await Promise.all(puts);
  await bus.settled();
  stopped.resume();
  await bus.put("publish", { author: "bob", body: { text: "301" } });
  await bus.settled();
  await other.drained();
  assert.deepEqual((await posted(other, "ann")).bob, numbers(301));
  assert.deepEqual(await bus.refused(), []);
});
