import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const count = (wanted) => (items) => items.length === wanted;

const comments = (id, more = "") => `/v1/items/${id}/comments${more}`;

const bodies = (page) => page.comments.map(({ body, deleted }) => (deleted ? "deleted" : body.text));

/** All comments on an item in this order, by pages of seven. */
async function listed(server, id, order) {
  const all = [];
  for (let cursor = ""; ; ) {
    const page = await server.call("GET", comments(id, `?order=${order}&limit=7${cursor}`));
    all.push(...page.comments);
    if (page.next === null) return all;
    cursor = `&cursor=${page.next}`;
  }
}

test("s3: what a phone says is read and answered by another, counts on pages, and comes as no change", async (t) => {
  const server = await Home.start(t);
  for (const reader of ["ann", "eve"]) await server.follow(reader, "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const { id } = await server.publish("bob", { text: "post" });
  await phone.shows("the post", count(1));
  const { position } = phone;

  const [ann, eve] = [await server.token("ann"), await server.token("eve")];
  const say = (text, token, more) => server.call("POST", comments(id), { body: { text }, ...more }, { token });
  const first = await say("first", ann);
  const reply = await say("reply", eve, { reply_to: first.id });
  await server.call("PUT", "/v1/users/eve", { name: "Eve" });
  const page = await server.call("GET", comments(id), undefined, { token: ann });
  assert.deepEqual([bodies(page), page.next, page.people], [["reply", "first"], null, { eve: { name: "Eve" } }]);
  assert.deepEqual([page.comments[0].author, page.comments[0].reply_to], ["eve", first.id]);
  const shown = async () => (await phone.client.rpc("page", { channel: "feed" })).data.items[0].counts;
  assert.deepEqual(await shown(), { comments: 2 });

  const newer = (from) => server.call("GET", comments(id, `?order=oldest&cursor=${from}`), undefined, { token: ann });
  assert.deepEqual(bodies(await newer(page.newest)), []);
  await say("third", eve);
  assert.deepEqual(bodies(await newer(page.newest)), ["third"]);

  await server.call("DELETE", comments(id, `/${first.id}`), undefined, { token: ann });
  assert.deepEqual(bodies(await server.call("GET", comments(id))), ["third", "reply", "deleted"]);
  assert.deepEqual(await shown(), { comments: 2 });
  await server.call("PUT", "/v1/users/eve/blocked/ann");
  assert.deepEqual(bodies(await server.call("GET", comments(id), undefined, { token: ann })), ["deleted"]);
  assert.deepEqual(bodies(await server.call("GET", comments(id, "?viewer=eve"))), ["third", "reply", "deleted"]);

  await server.publish("bob", { text: "after" });
  await phone.shows("what came after", ([item]) => item.body.text === "after");
  assert.equal(phone.position.offset, position.offset + 1, "the comments were no changes");
  await server.call("DELETE", `/v1/items/${id}`);
  for (const gone of [comments(id), comments(id, `/${reply.id}`)]) {
    await assert.rejects(server.call("GET", gone), /404/, gone);
  }
});

test("s1: no comment is lost or written twice when the server is killed and requests are repeated", async (t) => {
  const server = await Home.start(t);
  const { id } = await server.publish("bob", { text: "hot" });
  const names = Array.from({ length: 40 }, (_, n) => `comment-${n}`);
  const answered = new Map();
  const say = async (text) => {
    const key = { headers: { "idempotency-key": text } };
    const { id: made } = await server.call("POST", comments(id), { author: "ann", body: { text } }, key);
    assert.equal(answered.get(text) ?? made, made, "a repetition gets the first answer");
    answered.set(text, made);
  };
  for (let round = 0; round < 3; round += 1) {
    const begun = names.slice(round * 10, round * 10 + 20).map((text) => say(text).catch(() => {}));
    await begun[0];
    await server.kill();
    await Promise.all(begun);
    await server.start();
    const there = await listed(server, id, "oldest");
    const texts = there.map(({ body }) => body.text);
    assert.equal(new Set(texts).size, texts.length, "none is there twice");
    assert.deepEqual((await listed(server, id, "newest")).reverse(), there, "both orders agree");
    const { counts } = await server.call("GET", `/v1/items/${id}`);
    assert.equal(counts?.comments ?? 0, there.length, "the count is the number of comments");
    for (const [text, made] of answered) {
      assert.ok(there.some((comment) => comment.id === made && comment.body.text === text), `${text} was answered`);
    }
  }
  for (const text of names) await say(text);
  assert.deepEqual((await server.call("GET", `/v1/items/${id}`)).counts, { comments: names.length });
});
