// The comments of shared/comments.js: no news are lost, or undone, by a load that is under way.

import assert from "node:assert/strict";
import test from "node:test";

import { Comments } from "./shared/comments.js";

const comment = (id, version = 1) => ({ id: `${id}`, version, created_at: id, body: { text: `${id}.${version}` } });
const news = (...given) => ({ op: "comment", comment: comment(...given) });
const shown = (comments) => comments.on("7")?.map(({ body }) => body.text);

/** A load of these comments on item 7: `answer` ends it. */
function load(comments, ...loaded) {
  let answer;
  const ended = comments.load("7", () => new Promise((resolve) => (answer = () => resolve(loaded))));
  return () => (answer(), ended);
}

test("comments that come, change and go while a load is under way are as the news say", async () => {
  const comments = new Comments();
  const first = load(comments, comment(1), comment(2), comment(3, 4));
  for (const one of [news(1, 2), { op: "uncomment", id: "2" }, news(3, 3), news(4)]) comments.take("7", one);
  assert.equal(comments.on("7"), null);
  await first();
  assert.deepEqual(shown(comments), ["1.2", "3.4", "4.1"]);

  const again = load(comments, comment(1, 2), comment(3, 4), comment(4));
  comments.take("7", { op: "uncomment", id: "4" });
  comments.take("7", news(5));
  assert.deepEqual(shown(comments), ["1.2", "3.4", "5.1"], "at once");
  await again();
  assert.deepEqual(shown(comments), ["1.2", "3.4", "5.1"], "and after the answer, which is older");
});

test("of two loads the one that began last is right, whichever is answered first", async () => {
  const comments = new Comments();
  const [older, newer] = [load(comments, comment(1)), load(comments, comment(1), comment(2))];
  await newer();
  await older();
  assert.deepEqual(shown(comments), ["1.1", "2.1"]);
});

test("comments that are forgotten while they are loaded stay forgotten, and a load that fails leaves what was there", async () => {
  const comments = new Comments();
  const forgotten = load(comments, comment(1));
  assert.ok(comments.has("7"));
  comments.forget("7");
  await forgotten();
  assert.deepEqual([comments.on("7"), comments.has("7")], [null, false]);

  await load(comments, comment(1))();
  await assert.rejects(comments.load("7", () => Promise.reject(new Error("away"))), /away/);
  comments.take("7", news(2));
  assert.deepEqual(shown(comments), ["1.1", "2.1"]);
});
