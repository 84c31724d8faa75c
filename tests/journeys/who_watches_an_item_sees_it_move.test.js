import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const comments = (id, more = "") => `/v1/items/${id}/comments${more}`;

/** A screen that shows one item: its counts and its comments, as the app guide says. */
class Screen {
  counts = null;
  own = null;
  version = null;
  comments = new Map();
  ops = [];
  opened = 0;
  ended = null;

  constructor(phone, id) {
    this.watch = phone.client.newSubscription(`item:${id}`, { minResubscribeDelay: 20, maxResubscribeDelay: 200 });
    this.watch.on("subscribed", ({ data }) => {
      Object.assign(this, data);
      this.opened += 1;
    });
    this.watch.on("publication", ({ data }) => this.#take(data));
    this.watch.on("unsubscribed", ({ code, reason }) => (this.ended = { code, reason }));
    this.watch.subscribe();
  }

  #take({ op, counts, version, comment, id }) {
    this.ops.push(op);
    if (op === "counts") Object.assign(this, { counts, version });
    if (op === "comment") this.comments.set(comment.id, comment);
    if (op === "uncomment") this.comments.delete(id);
  }

  get texts() {
    return [...this.comments.values()].map(({ body, deleted }) => (deleted ? "deleted" : body.text));
  }

  shows(what, condition) {
    const seen = () => JSON.stringify({ counts: this.counts, texts: this.texts, ended: this.ended });
    return until(`the screen shows ${what}`, () => condition(this), { seen });
  }
}

test("s4: a screen of an item moves by itself, over one connection with the feed, and takes nothing from it", async (t) => {
  const server = await Home.start(t);
  for (const reader of ["ann", "eve"]) await server.follow(reader, "bob");
  const { id } = await server.publish("bob", { text: "post" });
  await server.call("PUT", "/v1/users/eve/blocked/cid");
  const phone = await Phone.open(t, server, "ann");
  const other = await Phone.open(t, server, "eve");
  for (const each of [phone, other]) await each.shows("the post", (items) => items.length === 1);
  const { position } = phone;
  await server.call("PUT", `/v1/items/${id}/reactions/like/ann`);
  const [screen, blocked] = [new Screen(phone, id), new Screen(other, id)];
  await screen.shows("where the item stands", ({ opened }) => opened === 1);
  await blocked.shows("where the item stands", ({ opened }) => opened === 1);
  assert.deepEqual([screen.counts, screen.own, screen.version], [{ like: 1 }, ["like"], 1]);
  assert.deepEqual([blocked.counts, blocked.own], [{ like: 1 }, []]);

  const token = await server.token("ann");
  const say = (author, text, more) => server.call("POST", comments(id), { author, body: { text }, ...more });
  const first = await say("cid", "first");
  await screen.shows("the comment", ({ texts }) => texts.join() === "first");
  await server.call("PATCH", comments(id, `/${first.id}`), { body: { text: "better" } });
  await screen.shows("the edit", ({ texts }) => texts.join() === "better");
  const reply = await server.call("POST", comments(id), { body: { text: "reply" }, reply_to: first.id }, { token });
  for (const each of [screen, blocked]) await each.shows("both", ({ counts }) => counts.comments === 2);
  await blocked.shows("what it sees", ({ texts }) => texts.join() === "reply");
  await server.call("DELETE", comments(id, `/${first.id}`));
  await screen.shows("the placeholder", ({ texts, counts }) => texts.join() === "deleted,reply" && counts.comments === 1);
  await server.call("DELETE", comments(id, `/${reply.id}`));
  await screen.shows("no reply", ({ texts }) => texts.join() === "deleted");

  for (let nth = 0; nth < 20; nth += 1) await server.call("PUT", `/v1/items/${id}/reactions/like/fan-${nth}`);
  for (const each of [screen, blocked]) await each.shows("all likes", ({ counts }) => counts.like === 21);
  await server.publish("bob", { text: "after" });
  await phone.shows("what came after", ([item]) => item.body.text === "after");
  assert.equal(phone.position.offset, position.offset + 1, "nothing around the item was a change of the feed");
});

test("s4: a screen comes back to what is so now, and hears when its reader may see the item no more", async (t) => {
  const server = await Home.start(t);
  for (const reader of ["ann", "eve"]) await server.follow(reader, "bob");
  const { id } = await server.publish("bob", { text: "post" });
  const phone = await Phone.open(t, server, "ann");
  const other = await Phone.open(t, server, "eve");
  for (const each of [phone, other]) await each.subscribed();
  const [screen, left] = [new Screen(phone, id), new Screen(other, id)];
  for (const each of [screen, left]) await each.shows("where the item stands", ({ opened }) => opened === 1);
  await server.kill();
  await server.start();
  await server.call("PUT", `/v1/items/${id}/reactions/like/eve`);
  for (const each of [screen, left]) {
    await each.shows("what is so now", ({ opened, counts }) => opened >= 2 && counts.like === 1);
  }
  await server.call("DELETE", "/v1/users/eve/following/bob");
  await left.shows("the end", ({ ended }) => ended?.code === 2001);
  assert.equal(screen.ended, null);
  await server.call("DELETE", `/v1/items/${id}`);
  await screen.shows("the end", ({ ended }) => ended?.code === 2001);
  left.ended = null;
  left.watch.subscribe();
  await left.shows("that there is no such item", ({ ended }) => ended?.code === 102);
});

test("s4: a screen of an item sees how many repost it, and how many take that back", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const { id } = await server.publish("bob", { text: "post" });
  const phone = await Phone.open(t, server, "ann");
  await phone.shows("the post", (items) => items.length === 1);
  const screen = new Screen(phone, id);
  await screen.shows("where the item stands", ({ opened }) => opened === 1);
  const reposts = [];
  for (const author of ["cid", "dan", "cid"]) {
    reposts.push((await server.call("POST", "/v1/items", { author, body: { text: "look" }, ref: id })).id);
  }
  await screen.shows("all of them", ({ counts }) => counts.reposts === 3);
  await server.call("DELETE", `/v1/items/${reposts[1]}`);
  await screen.shows("one less", ({ counts }) => counts.reposts === 2);
  const list = await server.call("GET", `/v1/items/${id}/reposts`);
  assert.deepEqual(list.reposts.map(({ id }) => id), [reposts[2], reposts[0]]);
  const again = new Screen(await Phone.open(t, server, "ann", { device: "other" }), id);
  await again.shows("what is so now", ({ counts }) => counts?.reposts === 2);
});
