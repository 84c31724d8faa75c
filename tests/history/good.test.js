import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { check, INVARIANTS, worded } from "./check.js";
import { expected } from "./expected.js";
import { History } from "./history.js";
import { Story } from "./story.js";

function isGood(history) {
  const { violations, decided, complete } = check(history);
  const textsOf = (numbers) => new Map(numbers.map((n) => [n, JSON.stringify(history.lines[n - 1])]));
  assert.equal(worded(violations, textsOf).join("\n"), "");
  assert.ok(complete);
  return decided;
}

/** A day with a bit of everything. */
function day(run) {
  const story = new Story(run);
  story.follow("ann", "bob");
  story.follow("eve", "bob");
  const phone = story.connect("ann", "ios");
  const tablet = story.connect("ann", "web", { node: "n2" });
  const first = story.publish("bob", "one", { key: "k1" });
  story.publish("bob", "one", { key: "k1" });
  story.publish("bob", "never answered", { answered: false });
  const second = story.publish("bob", "two");
  story.publish("cyd", "three");
  story.edit(first);
  story.delete(second);
  story.ack(phone);
  story.sessions("ann");
  story.follow("ann", "cyd");
  story.publish("cyd", "four");
  story.unfollow("ann", "cyd");
  story.follow("ann", "cyd");
  story.ack(tablet);
  story.line({ kind: "memory", who: "gateway-1", bytes: 50_000_000 });
  return { story, phone, tablet };
}

test("a day on which all went right breaks no invariant, and every invariant has decided something", () => {
  const decided = isGood(day().story.finish());
  for (const { name } of INVARIANTS) assert.ok(decided[name] > 0, `${name} decided nothing`);
});

test("a notified phone that fetches by history breaks no invariant", () => {
  const { story } = day();
  const notified = story.connect("eve", "ios", { deliver: "notify" });
  story.publish("bob", "five");
  story.history(notified, notified.feed.position.offset);
  isGood(story.finish());
});

test("items published in a batch, one of them refused, break no invariant", () => {
  const { story } = day();
  const ops = ["five", "six"].map((text) => ({ author: "cyd", body: { text }, idempotency_key: text }));
  story.call("POST", "/v1/items/batch", { body: { ops } }, () => {
    const item = { id: "5000", author: "cyd", feed: "feed", seq: 3, body: ops[0].body, rank: 5000, version: 1, gone: false };
    story.items.set(item.id, item);
    story.append("ann", { op: "add", id: item.id });
    return [200, { results: [{ status: 201, id: item.id, author: "cyd", outbox_seq: 3 }, { status: 409, type: "conflict" }] }];
  });
  isGood(story.finish());
});

test("a phone that comes back, to another node or after the log was lost, breaks no invariant", () => {
  const { story, phone } = day();
  story.close(phone, 1006);
  story.publish("bob", "while away");
  story.connect("ann", "ios", { node: "n2", position: phone.feed.position }).feed.reset(story.page("ann"));
  story.lose("ann");
  story.publish("bob", "in the new epoch");
  const again = story.connect("ann", "ios", { position: phone.feed.position });
  story.ack(again);
  isGood(story.finish());
});

test("a newer connection of a device closes the older with 4500", () => {
  const { story, phone } = day();
  const newer = story.connect("ann", "ios", { node: "n2" });
  story.ack(newer);
  assert.ok(!story.phones.has(phone));
  isGood(story.finish());
});

test("a Redis that was rolled back may hold an older position", () => {
  const { story, phone } = day();
  const { position } = story.stored.get("ann ios");
  story.publish("bob", "later");
  story.ack(phone);
  story.sessions("ann");
  story.line({ kind: "fault", what: "roll back", who: "redis" });
  story.stored.get("ann ios").position = position;
  story.sessions("ann");
  isGood(story.finish());
});

test("a feed of several pages, read while it grows, breaks no invariant", () => {
  const story = new Story();
  story.follow("ann", "bob");
  for (let i = 0; i < 50; i += 1) story.publish("bob", `post ${i}`);
  const { next } = story.page("ann", { limit: 20 });
  story.publish("bob", "meanwhile");
  story.page("ann", { limit: 20, cursor: next });
  story.walk("ann", 7);
  isGood(story.finish());
});

test("of an author followed late only the newest items have to be there", () => {
  const story = new Story({ backfill: 3 });
  for (let i = 0; i < 10; i += 1) story.publish("bob", `post ${i}`);
  story.follow("ann", "bob");
  story.publish("bob", "later");
  isGood(story.finish());
});

test("an item whose publish got no answer may be there or not", () => {
  for (const effect of [true, false]) {
    const story = new Story();
    story.follow("ann", "bob");
    story.publish("bob", "known");
    story.publish("bob", "perhaps", { effect, answered: false });
    isGood(story.finish());
  }
});

test("a publish beside a follow may go either way", () => {
  for (const seen of [true, false]) {
    const story = new Story({ backfill: 0 });
    story.publish("bob", "before");
    story.call("PUT", "/v1/users/ann/following/bob", {}, () => {
      story.edges.set("ann bob", { on: true, from: 0 });
      story.publish("bob", "beside", { to: seen ? ["ann"] : [] });
      return [204, null];
    });
    story.publish("bob", "after");
    isGood(story.finish());
  }
});

test("i13_what_is_pulled_may_come_behind_what_is_pushed_later", () => {
  const story = new Story();
  story.follow("ann", "bob");
  const phone = story.connect("ann", "ios");
  story.publish("bob", "pushed");
  story.classify("bob", "pull");
  const late = ["one", "two"].map((text) => story.publish("bob", text, { to: [] }));
  story.classify("bob", "push");
  story.publish("bob", "pushed again");
  for (const id of late) story.append("ann", { op: "add", id });
  story.ack(phone);
  const { I10, I14 } = isGood(story.finish());
  assert.ok(I10 > 0 && I14 > 0);
});

test("an author who may have crossed the threshold has no certain order", () => {
  const story = new Story({ pull_above: 1 });
  for (const reader of ["ann", "eve"]) story.follow(reader, "bob");
  const late = story.publish("bob", "pulled by two", { to: ["eve"] });
  story.unfollow("eve", "bob");
  story.publish("bob", "pushed to one");
  story.append("ann", { op: "add", id: late });
  isGood(story.finish());
});

test("an author whose class may not have changed has no certain order", () => {
  const story = new Story();
  story.follow("ann", "bob");
  story.classify("bob", "push");
  story.call("PUT", "/v1/authors/bob", { body: { class: "pull" }, answered: false }, () => [204, null]);
  const late = story.publish("bob", "pulled", { to: [] });
  story.call("PUT", "/v1/authors/bob", { body: { class: "push" } }, () => [204, null]);
  story.publish("bob", "pushed");
  story.append("ann", { op: "add", id: late });
  isGood(story.finish());
});

test("what is addressed to a reader comes without a follow, is edited and deleted, and no unfollow takes it away", () => {
  const { story, phone } = day();
  const note = story.publish("bob", "for ann", { readers: ["ann"] });
  const both = story.publish("dan", "for both", { readers: ["ann", "eve"] });
  story.publish("dan", "nobody was told that it was accepted", { readers: ["ann"], answered: false });
  story.publish("dan", "perhaps", { readers: ["eve"], answered: false, effect: false });
  story.edit(note);
  story.unfollow("ann", "bob");
  story.follow("ann", "bob");
  story.delete(both);
  story.lose("ann");
  story.publish("bob", "again for ann", { readers: ["ann"] });
  story.connect("ann", "ios", { position: phone.feed.position });
  isGood(story.finish());
});

const LIKES = { feeds: { likes: ["like"] } };

test("a named feed has its own log, position and pages, over one connection and one edge", () => {
  const { story, phone } = day({ ...LIKES, backfill: 2 });
  const likes = story.also(phone, "likes");
  const [first] = ["one", "two", "three"].map((text) => story.publish("bob", text, { kind: "like" }));
  story.publish("bob", "a post between", { kind: "post" });
  story.publish("dan", "for ann", { kind: "like", readers: ["ann"] });
  story.edit(first);
  story.ack(likes);
  story.ack(phone);
  story.sessions("ann");
  story.unfollow("ann", "bob");
  story.follow("ann", "bob");
  story.publish("bob", "four", { kind: "like" });
  story.walk("ann", 2, "likes");
  story.lose("eve");
  isGood(story.finish());
});

test("a shield is an unfollow, its end a follow, and a follow under a shield stands in the list alone", () => {
  const { story, phone } = day({ backfill: 2 });
  story.shield("ann", "muted", "bob");
  story.publish("bob", "muted");
  story.shield("ann", "muted", "bob", { up: false });
  story.publish("bob", "heard again");
  story.shield("bob", "hidden", "ann");
  story.shield("ann", "blocked", "bob");
  story.publish("bob", "not for ann", { readers: ["ann"], to: [] });
  story.unfollow("ann", "bob");
  story.shield("bob", "hidden", "ann", { up: false });
  story.publish("bob", "unseen");
  story.follow("ann", "bob");
  story.shield("ann", "blocked", "bob", { up: false });
  story.publish("bob", "for ann", { readers: ["ann"] });
  story.shield("eve", "blocked", "bob");
  story.shield("ann", "muted", "cyd");
  story.ack(phone);
  isGood(story.finish());
});

test("a shield that got no answer may stand or not", () => {
  for (const effect of [true, false]) {
    const story = new Story();
    story.follow("ann", "bob");
    story.publish("bob", "before");
    if (effect) story.shield("ann", "muted", "bob");
    else story.call("PUT", "/v1/users/ann/muted/bob", {}, () => [204, null]);
    story.lines.at(-1).status = null;
    story.publish("bob", "after");
    story.publish("bob", "a word", { readers: ["ann"] });
    isGood(story.finish());
  }
});

test("an author whom everyone follows is seen without an edge, from then on, until an unfollow or a shield", () => {
  const story = new Story();
  for (const reader of ["ann", "eve", "joe"]) story.follow(reader, "bob");
  story.connect("ann", "ios");
  story.publish("all", "before");
  story.classify("all", "everyone");
  story.publish("all", "for everyone");
  story.unfollow("eve", "all");
  story.shield("joe", "muted", "all");
  story.publish("all", "for ann");
  story.shield("joe", "muted", "all", { up: false });
  story.publish("all", "for ann and joe");
  isGood(story.finish());
});

test("to follow again, or to ask again what got no answer, changes nothing", () => {
  const story = new Story({ backfill: 1 });
  story.call("PUT", "/v1/users/ann/following/bob", { answered: false }, () => [204, null]);
  story.follow("ann", "bob");
  const ids = ["one", "two", "three"].map((text) => story.publish("bob", text));
  story.follow("ann", "bob");
  const history = story.finish();
  isGood(history);
  const { must } = expected(history, { reader: "ann", feed: "feed" }, ["bob"]);
  assert.deepEqual([...must.keys()], ids);
});

test("what is narrowed is for those on its lists, and a later follow brings it to nobody else", () => {
  const story = new Story({ backfill: 2 });
  for (const reader of ["ann", "eve", "joe"]) story.follow(reader, "bob");
  story.connect("ann", "ios");
  story.list("bob", "near", ["ann", "joe"]);
  const near = story.publish("bob", "for ann and joe", { narrowed: { lists: ["near"] } });
  story.list("bob", "near", ["joe"], false);
  story.publish("bob", "for eve and joe", { narrowed: { except_lists: ["near"] } });
  story.edit(near);
  for (const reader of ["eve", "joe"]) {
    story.unfollow(reader, "bob");
    story.follow(reader, "bob");
  }
  story.publish("bob", "for all");
  story.lose("joe");
  const history = story.finish();
  isGood(history);
  const seen = (reader) => expected(history, { reader, feed: "feed" }, ["bob"]).must.size;
  assert.deepEqual(["ann", "eve", "joe"].map(seen), [2, 2, 3]);
});

test("what a pulled author narrows is pushed, and may overtake what is pulled", () => {
  const story = new Story();
  story.follow("ann", "bob");
  story.classify("bob", "pull");
  story.list("bob", "near", ["ann"]);
  const pulled = story.publish("bob", "for all", { to: [] });
  story.publish("bob", "for ann", { narrowed: { lists: ["near"] } });
  story.append("ann", { op: "add", id: pulled });
  isGood(story.finish());
});

test("who is put on a list beside a publish may see the item or not", () => {
  for (const seen of [true, false]) {
    const story = new Story();
    for (const reader of ["ann", "eve"]) story.follow(reader, "bob");
    story.list("bob", "near", ["eve"]);
    const ops = [{ op: "add", user: "bob", list: "near", member: "ann" }];
    story.call("POST", "/v1/lists/batch", { body: { ops } }, () => {
      story.publish("bob", "beside", { narrowed: { lists: ["near"] }, to: seen ? ["ann", "eve"] : ["eve"] });
      return [200, { results: [{ status: 200 }] }];
    });
    isGood(story.finish());
  }
});

test("the command line prints each violation with its lines, and fails", () => {
  const story = new Story();
  story.follow("ann", "bob");
  story.log("ann").next += 1;
  story.publish("bob", "one");
  story.finish();
  const file = join(mkdtempSync(join(tmpdir(), "history-")), "history.jsonl");
  writeFileSync(file, story.lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const { status, stdout } = spawnSync(process.execPath, [fileURLToPath(new URL("check.js", import.meta.url)), file], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stdout, /^I1: the changes after 0: 1 should come, not 2\n {4}\d+: \{"at":/);
  assert.match(stdout, /\n[1-9] violations\n$/);
});

test("a history whose last line is torn is read up to there, and does not count as complete", () => {
  const text = `${JSON.stringify({ at: 0, kind: "run" })}\n${JSON.stringify({ at: 1, kind: "asked", call: 1, method: "GET", path: "/readyz" })}\n{"at":2,"kin`;
  const { complete, violations } = check(new History(text.split("\n")));
  assert.deepEqual([complete, violations], [false, []]);
});
