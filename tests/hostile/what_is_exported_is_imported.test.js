// A body is kept to the byte, line breaks between its tokens included. An export has a line for each record all the same:
// nothing of a body is taken for a line of its own, and another store ends with the same items.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "../actors/server.js";

/** What the inner lines of hostile bodies try to be. */
const FORGED = [
  '{"type":"item","id":"666","author":"victim","published_at":1,"body":"forged"}',
  '{"type":"follow","reader":"victim","author":"mallory","since":1}',
  '{"type":"class","author":"mallory","class":"everyone"}',
  '{"type":"cursor","cursor":"4:999999"}',
];

const BODIES = [
  '{\n  "text": "pretty",\r\n  "tags": [\n    1.0,\n    2e3\n  ]\n}',
  ...FORGED.map((line) => `[1,\n${line}\n,2]`),
  ...FORGED.map((line) => `[1,\r${line}\r,2]`),
  '["\\n{\\"type\\":\\"item\\"}\\r\\n", "\u2028\u2029\u0085", "\\u2028\\u000a"]',
  "\n\n\n1\n",
  '"\u2028"',
];

async function post(server, path, type, body) {
  const headers = { authorization: `Bearer ${server.key}`, "content-type": type };
  const answer = await fetch(server.url + path, { method: "POST", headers, body });
  return { status: answer.status, text: await answer.text() };
}

async function text(server, path) {
  const answer = await fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } });
  return answer.text();
}

/** The export's lines without cursors. */
async function exported(server) {
  const lines = (await text(server, "/v1/export")).split("\n").filter((line) => line !== "");
  return lines.filter((line) => JSON.parse(line).type !== "cursor");
}

test("hostile bodies go out on one line each and come in again as what they were", async (t) => {
  const [from, to] = [await Server.start(t), await Server.start(t)];
  for (const body of BODIES) {
    const answer = await post(from, "/v1/items", "application/json", `{"author":"mallory","body":${body}}`);
    assert.equal(answer.status, 201, `${body}: ${answer.text}`);
  }
  const lines = await exported(from);
  assert.equal(lines.length, BODIES.length, "a line for each item and no other");
  for (const line of lines) assert.equal(JSON.parse(line).type, "item");

  const report = await post(to, "/v1/import", "application/x-ndjson", `${lines.join("\n")}\n`);
  const done = { done: true, lines: lines.length, new: lines.length, unchanged: 0, refused: 0 };
  assert.deepEqual(JSON.parse(report.text.trim().split("\n").at(-1)), done);

  const all = "/v1/users/mallory/outbox?limit=100";
  const blank = (json) => json.replace(/[\r\n]/g, " ");
  assert.equal(await text(to, all), blank(await text(from, all)), "to the byte, but for line breaks");
  assert.deepEqual(await exported(to), lines);
  assert.equal((await to.request("GET", "/v1/items/666")).status, 404);
  assert.deepEqual((await to.call("GET", "/v1/users/victim/outbox")).items, []);
  assert.deepEqual((await to.call("GET", "/v1/users/victim/following")).users, []);
  assert.equal((await to.call("GET", "/v1/authors/mallory")).class, "auto");
});

test("s9: lists, audiences and pins go out and come in again, and a narrowed item is shown to the same readers", async (t) => {
  const [from, to] = [await Server.start(t), await Server.start(t)];
  for (const reader of ["inside", "outside"]) await from.follow(reader, "ann");
  for (const list of ["close", "a:b@c"]) await from.call("PUT", `/v1/users/ann/lists/${list}/inside`);
  const narrowed = (text) => from.publish("ann", { text }, { audience: { lists: ["close"] } });
  const [kept, gone] = [await narrowed("kept"), await narrowed("gone")];
  for (const { id } of [gone, kept]) await from.call("PUT", `/v1/users/ann/pins/${id}`);
  await from.call("DELETE", `/v1/items/${gone.id}`);
  const lines = await exported(from);
  const of = (type) => lines.map((line) => JSON.parse(line)).filter((line) => line.type === type);
  assert.deepEqual(of("item").map(({ id, audience }) => [id, audience]), [[kept.id, ["inside"]], [gone.id, ["inside"]]]);
  assert.equal(of("listed").length, 2);
  assert.deepEqual(of("pins"), [{ type: "pins", user: "ann", items: [kept.id] }]);

  const resumed = [];
  for (let cursor = ""; ; ) {
    const some = (await text(from, `/v1/export${cursor && `?cursor=${cursor}`}`)).split("\n").filter((line) => line !== "");
    const end = some.findIndex((line) => JSON.parse(line).type === "cursor");
    resumed.push(...some.slice(0, end < 0 ? some.length : end));
    if (end < 0) break;
    cursor = encodeURIComponent(JSON.parse(some[end]).cursor);
  }
  assert.deepEqual(resumed, lines, "from each cursor it goes on where it ended");

  for (const fresh of [true, false]) {
    const report = await post(to, "/v1/import", "application/x-ndjson", `${lines.join("\n")}\n`);
    const { refused, unchanged } = JSON.parse(report.text.trim().split("\n").at(-1));
    assert.deepEqual([refused, unchanged > 0], [0, !fresh], report.text);
  }
  assert.deepEqual(await exported(to), lines);
  await to.drained();
  const shown = async (reader) => (await to.feed(reader)).map(({ id, narrowed }) => [id, narrowed]);
  assert.deepEqual([await shown("inside"), await shown("outside")], [[[kept.id, true]], []]);
  assert.deepEqual((await to.call("GET", "/v1/users/ann/lists/close")).users.map(({ user }) => user), ["inside"]);
  const all = (await text(to, "/v1/users/inside/export")).split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  const known = all.filter(({ type }) => ["listed", "addressed"].includes(type)).map(({ type, id, list }) => id ?? list ?? type);
  assert.deepEqual(known.sort(), [kept.id, "a:b@c", "close"].sort(), "what is known of a user says so too");
});
