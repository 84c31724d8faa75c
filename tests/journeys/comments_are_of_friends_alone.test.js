// Moments: under a post a user sees the comments and likes of mutual friends and of its author, on pages, live and in
// notifications, and is not told how many others there are.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const CONFIG = `
[comments]
visible = "mutual"
[feeds.notifications]
kinds = ["comment", "reply"]
[notify]
comment = "comment"
reply = "reply"
[search]
fields = ["text"]
`;

const comments = (id, more = "") => `/v1/items/${id}/comments${more}`;

/** Ann has a post. Bob and cid are friends; dan follows bob, and nobody follows dan. All of them follow ann. */
async function start(t) {
  const server = await Home.start(t, { config: CONFIG });
  for (const [reader, author] of [["bob", "ann"], ["cid", "ann"], ["dan", "ann"], ["bob", "cid"], ["cid", "bob"], ["dan", "bob"]]) {
    await server.follow(reader, author);
  }
  const { id } = await server.publish("ann", { text: "moment" });
  await server.drained();
  return { server, id };
}

/** Says something in the name of a user. */
const say = (server, id, author, text, more = {}) => server.call("POST", comments(id), { author, body: { text }, ...more });

/** Each frame of an item that is watched, as a word. */
async function watch(t, server, user, id) {
  const phone = await Phone.open(t, server, user);
  const [frames, subscription] = [[], phone.client.newSubscription(`item:${id}`)];
  subscription.on("publication", ({ data }) => frames.push(data));
  const began = new Promise((done) => subscription.on("subscribed", ({ data }) => done(data)));
  subscription.subscribe();
  const texts = () => frames.filter(({ op }) => op === "comment").map(({ comment }) => comment.body.text);
  return { phone, frames, texts, began: await began };
}

test("s3: a user sees the comments of friends and of the author of the post, by every read", async (t) => {
  const { server, id } = await start(t);
  const said = {};
  for (const author of ["ann", "bob", "cid", "dan"]) said[author] = (await say(server, id, author, `of ${author}`)).id;
  const wanted = { ann: ["ann", "bob", "cid", "dan"], bob: ["ann", "bob", "cid"], cid: ["ann", "bob", "cid"], dan: ["ann", "dan"], nobody: ["ann"] };
  for (const [viewer, authors] of Object.entries(wanted)) {
    const { token } = { token: await server.token(viewer) };
    for (const as of viewer === "nobody" ? [{}] : [{}, { token }]) {
      const seen = [];
      let cursor;
      do {
        const query = new URLSearchParams({ viewer, order: "oldest", limit: 2, ...(cursor && { cursor }) });
        const page = await server.call("GET", comments(id, `?${query}`), undefined, as);
        seen.push(...page.comments.map(({ author }) => author));
        cursor = page.next;
      } while (cursor);
      assert.deepEqual(seen, authors, viewer);
      for (const author of Object.keys(said)) {
        const { status } = await server.request("GET", comments(id, `/${said[author]}?viewer=${viewer}`), undefined, as);
        assert.equal(status, authors.includes(author) ? 200 : 404, `${viewer} reads ${author}`);
      }
    }
  }
  const all = await server.call("GET", comments(id));
  assert.equal(all.comments.length, 4, "a backend sees all");

  const token = await server.token("dan");
  const answer = await server.request("POST", comments(id), { body: { text: "re" }, reply_to: said.bob }, { token });
  assert.deepEqual([answer.status, answer.body.pointer], [422, "/reply_to"], "what is not seen is not answered");
  await server.call("PUT", "/v1/users/cid/blocked/bob");
  const { comments: left } = await server.call("GET", comments(id, "?viewer=bob&order=oldest"));
  assert.deepEqual(left.map(({ author }) => author), ["ann", "bob"], "a block ends it");
});

test("s3: no user is told how many comments there are, and a backend is", async (t) => {
  const { server, id } = await start(t);
  for (const author of ["bob", "dan"]) await say(server, id, author, "x");
  const token = await server.token("cid");
  const liked = await server.call("PUT", `/v1/items/${id}/reactions/like/cid`, undefined, { token });
  assert.deepEqual(liked.counts, { like: 1 });
  const phone = await Phone.open(t, server, "cid");
  await phone.shows("the post", (items) => items.length === 1);
  await until("the search finds the post", async () => (await server.call("GET", "/v1/search/items?q=moment")).items.length === 1);
  const counts = {
    rpc: (await phone.client.rpc("page", { channel: "feed" })).data.items[0].counts,
    feed: (await server.page("cid")).items[0].counts,
    item: (await server.call("GET", `/v1/items/${id}`, undefined, { token })).counts,
    items: (await server.call("GET", `/v1/items?ids=${id}&viewer=cid`)).items[0].counts,
    profile: (await server.call("GET", "/v1/users/ann/outbox?viewer=cid")).items[0].counts,
    search: (await server.call("GET", "/v1/search/items?q=moment&viewer=cid")).items[0].counts,
  };
  for (const [where, told] of Object.entries(counts)) assert.deepEqual(told, { like: 1 }, where);
  assert.deepEqual((await server.call("GET", `/v1/items/${id}`)).counts, { like: 1, comments: 2 }, "a backend that names nobody");
});

test("s3: who watches a post gets the comments that a page would show", async (t) => {
  const { server, id } = await start(t);
  await say(server, id, "bob", "before");
  const screens = {};
  for (const user of ["ann", "bob", "cid", "dan"]) screens[user] = await watch(t, server, user, id);
  for (const { began } of Object.values(screens)) assert.deepEqual(began.counts, {});
  const { id: first } = await say(server, id, "bob", "of bob");
  await say(server, id, "dan", "of dan");
  await server.call("PATCH", comments(id, `/${first}`), { body: { text: "better" } });
  await until("ann has seen the edit", () => screens.ann.texts().includes("better"));
  await say(server, id, "ann", "of ann");
  for (const [user, { texts }] of Object.entries(screens)) await until(`${user} sees what ann says`, () => texts().includes("of ann"));
  const seen = (user) => [...new Set(screens[user].texts())].filter((text) => text !== "of ann");
  assert.deepEqual([seen("dan"), seen("cid").includes("of dan"), seen("cid").includes("better")], [["of dan"], false, true]);
  assert.deepEqual([seen("bob").includes("of dan"), seen("bob").includes("better")], [false, true]);
  assert.ok(["of dan", "better"].every((text) => seen("ann").includes(text)), "the author of the post sees all");
  for (const { frames } of Object.values(screens)) assert.ok(!frames.some(({ counts }) => counts && "comments" in counts));
});

test("s4: who watches a post is told to look again when one like takes the place of another", async (t) => {
  const { server, id } = await start(t);
  await server.call("PUT", `/v1/items/${id}/reactions/like/dan`);
  const { frames } = await watch(t, server, "bob", id);
  const like = (op, user) => ({ op, item: id, kind: "like", user });
  await server.call("POST", "/v1/reactions/batch", { ops: [like("add", "cid"), like("remove", "dan")] });
  await until("bob is told", () => frames.some(({ op }) => op === "changed"));
});

test("s3: an answer is told to a friend, and to nobody who does not see it", async (t) => {
  const { server, id } = await start(t);
  const { id: of } = await say(server, id, "bob", "of bob");
  for (const author of ["dan", "cid", "ann"]) await say(server, id, author, `by ${author}`, { reply_to: of });
  await server.drained();
  const told = async (user) => (await server.page(user, { name: "notifications" })).items.map(({ author, kind }) => `${author} ${kind}`);
  assert.deepEqual(await told("bob"), ["ann reply", "cid reply"]);
  assert.deepEqual(await told("ann"), ["cid comment", "dan comment", "bob comment"], "the author of the post hears of all");
});

/** Everybody likes the post, and dan is sad about it too. */
async function liked(server, id) {
  for (const user of ["ann", "bob", "cid", "dan"]) await server.call("PUT", `/v1/items/${id}/reactions/like/${user}`);
  await server.call("PUT", `/v1/items/${id}/reactions/sad/dan`);
}

test("s3: a user counts and lists the likes of friends and of the author of the post, by every read", async (t) => {
  const { server, id } = await start(t);
  await liked(server, id);
  await until("the search finds the post", async () => (await server.call("GET", "/v1/search/items?q=moment")).items.length === 1);
  const wanted = {
    ann: [["ann", "bob", "cid", "dan", "dan"], { like: 4, sad: 1 }],
    bob: [["ann", "bob", "cid"], { like: 3 }],
    dan: [["ann", "dan", "dan"], { like: 2, sad: 1 }],
  };
  for (const [viewer, [users, counts]] of Object.entries(wanted)) {
    const token = await server.token(viewer);
    for (const as of [{}, { token }]) {
      const seen = [];
      let cursor;
      do {
        const query = new URLSearchParams({ viewer, limit: 2, ...(cursor && { cursor }) });
        const page = await server.call("GET", `/v1/items/${id}/reactions?${query}`, undefined, as);
        seen.push(...page.reactions.map(({ user }) => user));
        cursor = page.next;
      } while (cursor);
      assert.deepEqual(seen.sort(), users, viewer);
    }
    const { phone, began } = await watch(t, server, viewer, id);
    const told = {
      watched: began.counts,
      item: (await server.call("GET", `/v1/items/${id}`, undefined, { token })).counts,
      items: (await server.call("GET", `/v1/items?ids=${id}&viewer=${viewer}`)).items[0].counts,
      profile: (await server.call("GET", `/v1/users/ann/outbox?viewer=${viewer}`)).items[0].counts,
      search: (await server.call("GET", `/v1/search/items?q=moment&viewer=${viewer}`)).items[0].counts,
      again: (await server.call("PUT", `/v1/items/${id}/reactions/like/${viewer}`, undefined, { token })).counts,
    };
    if (viewer !== "ann") {
      told.feed = (await server.page(viewer)).items[0].counts;
      told.rpc = (await phone.client.rpc("page", { channel: "feed" })).data.items[0].counts;
    }
    for (const [where, those] of Object.entries(told)) assert.deepEqual(those, counts, `${viewer} by ${where}`);
  }
  const { reactions } = await server.call("GET", `/v1/items/${id}/reactions`);
  assert.equal(reactions.length, 5, "a backend that names nobody sees all");
  const token = await server.token("dan");
  const { status, body } = await server.request("GET", `/v1/items/${id}/reactions?viewer=bob`, undefined, { token });
  assert.deepEqual([status, body.type], [403, "/problems/forbidden"], "nobody looks through the eyes of another");
});

test("s3: who watches a post is told that likes have changed, and reads its own counts", async (t) => {
  const { server, id } = await start(t);
  const screens = {};
  for (const user of ["bob", "cid", "dan"]) screens[user] = await watch(t, server, user, id);
  await liked(server, id);
  const wanted = { bob: { like: 3 }, cid: { like: 3 }, dan: { like: 2, sad: 1 } };
  for (const [user, { frames }] of Object.entries(screens)) {
    const token = await server.token(user);
    await until(`${user} is told and reads what is so`, async () => {
      const { counts } = await server.call("GET", `/v1/items/${id}`, undefined, { token });
      return frames.length > 0 && JSON.stringify(counts) === JSON.stringify(wanted[user]);
    });
    for (const frame of frames) assert.deepEqual(frame, { op: "changed", version: 1 }, user);
  }
  await server.call("PATCH", `/v1/items/${id}`, { body: { text: "edited" } });
  await until("an edit is told", () => screens.bob.frames.some(({ op, version }) => op === "changed" && version === 2));
});
