// An item that is narrowed to some of the followers is shown to these, and to nobody else, by any route, channel or frame.
// The doors are those of the served document that a reader's token opens, so a new one is asked too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

/** It is in the item, in what is said of it, and in the name of who has reacted to it. */
const SECRET = "s3cret";

/** The routes that show a narrowed item to a follower in its audience. */
const DOORS = [
  "/v1/items",
  "/v1/items/{id}",
  "/v1/items/{id}/comments",
  "/v1/items/{id}/comments/{comment}",
  "/v1/items/{id}/reactions",
  "/v1/search/items",
  "/v1/users/{user}/changes",
  "/v1/users/{user}/feed",
];

/** Who asks, and whether the item is for them. In the ranking of `ranked` stands all that ann publishes. */
const READERS = { stranger: false, ranked: false, blocked: false, muting: false, outside: false, left: false, inside: true };

/** The ranked feed of these tests. */
const PICKS = "[feeds.picks]\nranked = true\n";

/** Puts these items into the ranking of a reader, and nothing else. */
const rank = (server, reader, ids) =>
  server.call("PUT", `/v1/users/${reader}/feeds/picks/ranking`, ids.map((id, nth) => ({ id, rank: -nth })));

const comments = (id, more = "") => `/v1/items/${id}/comments${more}`;

/** Ann's followers, and her list of close friends: all but `outside`, and with two who follow her no longer, or not yet. */
async function start(t) {
  const server = await Home.start(t, { config: '[search]\nfields = ["text"]\n[feeds.likes]\nkinds = ["like"]\n' + PICKS });
  for (const reader of ["blocked", "muting", "outside", "left", "inside"]) await server.follow(reader, "ann");
  for (const reader of Object.keys(READERS)) await server.follow(reader, "rae");
  const members = Object.keys(READERS).filter((reader) => reader !== "outside");
  const ops = members.map((member) => ({ op: "add", user: "ann", list: "close", member }));
  const { results } = await server.call("POST", "/v1/lists/batch", { ops });
  assert.ok(results.every(({ status }) => status === 200), JSON.stringify(results));
  const positions = {};
  for (const reader of Object.keys(READERS)) positions[reader] = (await server.page(reader)).position;
  return { server, positions };
}

/** Publishes the item, what stands around it, a repost of it, and an item for all, behind which nothing is under way. */
async function publish(server) {
  const audience = { lists: ["close"] };
  const { id, outbox_seq } = await server.publish("ann", { text: `${SECRET} news` }, { audience, foreign_id: "key-1" });
  assert.ok(outbox_seq > 0, "it stands in the outbox");
  const { id: comment } = await server.call("POST", comments(id), { author: "inside", body: { text: `${SECRET} words` } });
  await server.call("PUT", `/v1/items/${id}/reactions/like/${SECRET}-fan`);
  const { id: repost } = await server.publish("rae", { text: "look" }, { ref: id });
  const { id: open } = await server.publish("ann", { text: "for all" });
  return { id, comment, repost, open };
}

/** Asks every GET route that a reader's token opens. Answers which of them have shown the secret: the item, or what is
 * around it. A route that takes `viewer` must show the same to a backend that asks for the reader, if `same`. */
async function ask(server, reader, position, { id, comment, repost }, same = true) {
  const token = await server.token(reader);
  const document = await server.call("GET", "/openapi.json");
  const viewing = ({ parameters = [] }) => parameters.some(({ $ref }) => $ref === "#/components/parameters/Viewer");
  const fill = { user: reader, id, comment, list: "close" };
  const queries = {
    "/v1/items": [{ ids: `${id}` }, { ids: `${repost},${id}` }],
    "/v1/search/items": [{ q: SECRET }, { q: "news", author: "ann" }, { q: SECRET, viewer: reader }],
    "/v1/search/users": [{ q: SECRET }],
    "/v1/users/{user}/changes": [{ ...position, limit: 100 }],
    "/v1/users/{user}/feed": [{}, { name: "picks" }],
  };
  const [shown, shownToBackend, ofViewers] = [new Set(), new Set(), new Set()];
  const shows = (body, query) => JSON.stringify(body).replaceAll(JSON.stringify(query.q ?? null), "").includes(SECRET);
  let asked = 0;
  for (const [template, operations] of Object.entries(document.paths)) {
    // Its answer does not end; it is the subscription of the phones below.
    if (!operations.get?.security?.some((way) => "readerToken" in way) || template === "/connection/uni_sse") continue;
    const path = template.replace(/\{(\w+)\}/g, (_, name) => fill[name] ?? assert.fail(`what stands for ${name} in ${template}?`));
    for (const query of queries[template] ?? [{}]) {
      const { body } = await server.request("GET", `${path}?${new URLSearchParams(query)}`, undefined, { token });
      if (shows(body, query)) shown.add(template);
      asked += 1;
      if (!viewing(operations.get)) continue;
      ofViewers.add(template);
      const answer = await server.request("GET", `${path}?${new URLSearchParams({ ...query, viewer: reader })}`);
      if (shows(answer.body, query)) shownToBackend.add(template);
    }
  }
  assert.ok(asked >= 15 && ofViewers.size >= 8, `the document has the routes: ${asked}, ${[...ofViewers]}`);
  if (same) assert.deepEqual([...shownToBackend], [...shown].filter((door) => ofViewers.has(door)), `to a backend that asks for ${reader}`);
  const by_key = await server.request("GET", "/v1/items/foreign:key-1", undefined, { token });
  assert.equal(by_key.status === 200, shown.has("/v1/items/{id}"), `${reader} by the backend's key`);
  return [...shown].sort();
}

/** Whether ann's profile shows the secret: to a reader's token, and to a backend that asks for the reader. */
async function profile(server, reader) {
  const token = await server.token(reader);
  const items = async (as) => (await server.call("GET", `/v1/users/ann/outbox?viewer=${reader}`, undefined, as)).items;
  return [JSON.stringify(await items({ token })).includes(SECRET), JSON.stringify(await items({})).includes(SECRET)];
}

/** What a reader may say of the item, in the reader's own name: 404 to whom it is not shown. */
async function say(server, reader, { id, comment }) {
  const token = await server.token(reader);
  const status = async (method, path, body) => (await server.request(method, path, body, { token })).status;
  return [
    await status("PUT", `/v1/items/${id}/reactions/like/${reader}`),
    await status("DELETE", `/v1/items/${id}/reactions/like/${reader}`),
    await status("POST", comments(id), { body: { text: "hello" } }),
    await status("POST", comments(id), { body: { text: "hello" }, reply_to: comment }),
  ];
}

/** What a device has got: its list, the page by rpc, and the state of the item if it may watch it. */
async function device(phone, id) {
  const page = await phone.client.rpc("page", { channel: "feed", limit: 100 });
  const watch = phone.client.newSubscription(`item:${id}`);
  const watched = await new Promise((done) => {
    watch.on("subscribed", ({ data }) => done({ data }));
    watch.on("unsubscribed", ({ code }) => done({ code }));
    watch.on("error", ({ error }) => done({ error }));
    watch.subscribe();
  });
  watch.unsubscribe();
  return { list: JSON.stringify(phone.feed.items()), page: JSON.stringify(page.data), watches: "data" in watched };
}

test("s9: every door shows a narrowed item to a follower in its audience, and to nobody else", async (t) => {
  const { server, positions } = await start(t);
  const phones = {};
  for (const reader of Object.keys(READERS)) phones[reader] = await Phone.open(t, server, reader);
  const items = await publish(server);
  await server.call("PUT", "/v1/users/ann/blocked/blocked");
  await server.call("PUT", "/v1/users/muting/muted/ann");
  await server.unfollow("left", "ann");
  await rank(server, "ranked", [items.id, items.open]);
  await server.drained();
  await until("the search finds the item", async () => (await server.call("GET", `/v1/search/items?q=${SECRET}`)).items.length > 0);
  for (const [reader, inside] of Object.entries(READERS)) {
    const follows = ["outside", "inside"].includes(reader);
    const count = 1 + (follows ? 1 : 0) + (inside ? 1 : 0);
    await phones[reader].shows(`${count} items to ${reader}`, (shown) => shown.length === count);
    const changes = await ask(server, reader, positions[reader], items);
    // Who follows no longer was shown it before, and the log of that time says so.
    const before = ["blocked", "muting", "left"].includes(reader);
    const doors = changes.filter((door) => !before || door !== "/v1/users/{user}/changes");
    assert.deepEqual(doors, inside ? DOORS : [], reader);
    assert.deepEqual(await profile(server, reader), [inside, inside], reader);
    assert.deepEqual(await say(server, reader, items), inside ? [200, 200, 201, 201] : [404, 404, 404, 404], reader);
    const { list, page, watches } = await device(phones[reader], items.id);
    assert.deepEqual([list.includes(SECRET), page.includes(SECRET), watches], [inside, inside, inside], reader);
    const repost = await server.call("GET", `/v1/items/${items.repost}?viewer=${reader}`);
    assert.equal(JSON.stringify(repost).includes(SECRET), inside, `the repost to ${reader}`);
    assert.equal("ref_gone" in repost, !inside, reader);
    const explained = await server.call("GET", `/v1/explain?reader=${reader}&item=${items.id}`);
    assert.equal(explained.verdict, inside ? "shown" : "hidden", JSON.stringify(explained));
  }
  // A repost says what it reposts; beside that, the log of a follower outside has not even the id.
  const ids = (await server.changes("outside")).map(({ item, item_id }) => item?.id ?? item_id);
  assert.deepEqual(ids.sort(), [items.repost, items.open].sort());
});

test("s11: every door opens an item for all to a reader in whose ranking it stands, until it leaves or a shield is up", async (t) => {
  const { server, positions } = await start(t);
  const { id } = await server.publish("ann", { text: `${SECRET} news` }, { foreign_id: "key-1" });
  const { id: comment } = await server.call("POST", comments(id), { author: "inside", body: { text: `${SECRET} words` } });
  await server.call("PUT", `/v1/items/${id}/reactions/like/${SECRET}-fan`);
  const { id: other } = await server.publish("eve", { text: "another item" });
  await server.call("PUT", "/v1/users/ann/blocked/blocked");
  await server.call("PUT", "/v1/users/muting/muted/ann");
  await server.unfollow("left", "ann");
  await server.drained();
  await until("the search finds the item", async () => (await server.call("GET", `/v1/search/items?q=${SECRET}`)).items.length > 0);
  const items = { id, comment, repost: other };
  const asked = async (reader) => {
    // A backend is shown an item for all, whether the viewer follows its author or not.
    const doors = await ask(server, reader, positions[reader], items, false);
    const open = doors.filter((door) => !door.endsWith("/changes"));
    const { watches } = await device(await Phone.open(t, server, reader), id);
    return { open, said: await say(server, reader, items), watches };
  };
  const closed = { open: [], said: [404, 404, 404, 404], watches: false };
  const open = { open: DOORS.filter((door) => !door.endsWith("/changes")), said: [200, 200, 201, 201], watches: true };
  for (const reader of ["stranger", "blocked", "muting", "left"]) {
    assert.deepEqual(await asked(reader), closed, `${reader} before it is ranked`);
    await rank(server, reader, [id]);
  }
  await server.drained();
  for (const reader of ["stranger", "left"]) {
    assert.deepEqual(await asked(reader), open, reader);
    assert.deepEqual(await profile(server, reader), [false, true], "to a token the profile opens by a follow alone");
  }
  for (const reader of ["blocked", "muting"]) assert.deepEqual(await asked(reader), closed, `${reader}: a shield is up`);
  assert.deepEqual(await asked("ranked"), closed, "nothing stands in the ranking of this reader");

  const phone = await Phone.open(t, server, "stranger", { device: "watching" });
  const watch = phone.client.newSubscription(`item:${id}`);
  const ended = new Promise((done) => watch.on("unsubscribed", ({ code }) => done(code)));
  const begun = new Promise((done) => watch.on("subscribed", done));
  watch.subscribe();
  await begun;
  await rank(server, "stranger", [other]);
  assert.equal(await ended, 2001, "it has left the ranking");
  await server.drained();
  assert.deepEqual(await asked("stranger"), closed);
});

test("s9: every door shows what a private author publishes to followers, and to nobody who has only asked to be one", async (t) => {
  const { server, positions } = await start(t);
  await server.call("PUT", "/v1/users/ann", { name: "Ann", private: true });
  const readers = { stranger: false, ranked: false, blocked: false, muting: false, left: false, asking: false, inside: true };
  await server.follow("asking", "rae");
  positions.asking = (await server.page("asking")).position;
  const { id } = await server.publish("ann", { text: `${SECRET} news` }, { foreign_id: "key-1" });
  const { id: comment } = await server.call("POST", comments(id), { author: "inside", body: { text: `${SECRET} words` } });
  await server.call("PUT", `/v1/items/${id}/reactions/like/${SECRET}-fan`);
  const { id: repost } = await server.publish("rae", { text: "look" }, { ref: id });
  await server.call("PUT", `/v1/users/ann/pins/${id}`);
  await server.call("PUT", "/v1/users/ann/blocked/blocked");
  await server.call("PUT", "/v1/users/muting/muted/ann");
  await server.unfollow("left", "ann");
  for (const reader of ["left", "asking", "ranked"]) {
    const { status, body } = await server.request("PUT", `/v1/users/${reader}/following/ann`);
    assert.deepEqual([status, body], [202, { pending: true }], reader);
  }
  for (const reader of Object.keys(readers)) await rank(server, reader, reader === "inside" ? [] : [id]);
  await server.drained();
  await until("the search finds the item", async () => (await server.call("GET", `/v1/search/items?q=${SECRET}`)).items.length > 0);
  const items = { id, comment, repost };
  const seen = async (reader, open) => {
    const doors = await ask(server, reader, positions[reader], items);
    // Who follows no longer was shown it before, and the log of that time says so.
    const before = ["blocked", "muting", "left"].includes(reader);
    assert.deepEqual(doors.filter((door) => !before || !door.endsWith("/changes")), open ? DOORS : [], reader);
    assert.deepEqual(await profile(server, reader), [open, open], reader);
    assert.deepEqual(await say(server, reader, items), open ? [200, 200, 201, 201] : [404, 404, 404, 404], reader);
    const { list, page, watches } = await device(await Phone.open(t, server, reader), id);
    assert.deepEqual([list.includes(SECRET), page.includes(SECRET), watches], [open, open, open], reader);
    const shown = await server.call("GET", `/v1/items/${repost}?viewer=${reader}`);
    assert.deepEqual([JSON.stringify(shown).includes(SECRET), "ref_gone" in shown], [open, !open], `the repost to ${reader}`);
    const found = await server.call("GET", `/v1/search/items?${new URLSearchParams({ q: SECRET, viewer: reader })}`);
    assert.equal(found.items.length, open ? 1 : 0, `a backend's search for ${reader}`);
    const explained = await server.call("GET", `/v1/explain?reader=${reader}&item=${id}`);
    assert.equal(explained.verdict, open ? "shown" : "hidden", JSON.stringify(explained));
    const person = await server.call("GET", "/v1/users/ann", undefined, { token: await server.token(reader) });
    assert.deepEqual([person.name, person.private], ["Ann", true], "who she is, everybody may know");
  };
  for (const [reader, open] of Object.entries(readers)) await seen(reader, open);

  const phone = await Phone.open(t, server, "asking", { device: "watching" });
  await server.call("PUT", "/v1/users/ann/followers/asking");
  await phone.shows("the item and the repost", (shown) => shown.length === 2);
  await server.drained();
  await seen("asking", true);
  await rank(server, "asking", []);
  await server.unfollow("asking", "ann");
  await phone.shows("the repost", (shown) => shown.length === 1);
  await server.drained();
  assert.deepEqual(await profile(server, "asking"), [false, false]);
  assert.deepEqual(await say(server, "asking", items), [404, 404, 404, 404]);
});

test("s9: what a device gets live, another gets that was away, and an edit and a delete reach the same", async (t) => {
  const { server } = await start(t);
  const inside = await Phone.open(t, server, "inside", { device: "one" });
  const outside = await Phone.open(t, server, "outside");
  const away = await Phone.open(t, server, "inside", { device: "two" });
  await away.shows("an empty feed", (items) => items.length === 0);
  away.close();
  const { id } = await publish(server);
  await inside.shows("the item, the repost and the item for all", (items) => items.length === 3);
  await outside.shows("the other two", (items) => items.length === 2);
  await server.call("PATCH", `/v1/items/${id}`, { body: { text: "edited" } });
  await inside.shows("the edit", (items) => items.some(({ body }) => body.text === "edited"));
  const back = await Phone.open(t, server, "inside", { device: "two", stored: away.stored });
  await back.shows("the same", (items) => items.length === 3 && items.some((item) => item.narrowed && item.body.text === "edited"));
  await server.call("DELETE", `/v1/items/${id}`);
  for (const phone of [inside, back]) await phone.shows("no deleted item", (items) => items.length === 2);
  await server.publish("ann", { text: "the last" });
  await outside.shows("the last", (items) => items.length === 3);
  assert.deepEqual(outside.ops, ["add", "add", "add"], "neither the edit nor the delete has come");
});

test("s9: an unfollow takes a narrowed item away, a follow brings it back, and lists change no past item", async (t) => {
  const { server } = await start(t);
  const phone = await Phone.open(t, server, "inside");
  const stranger = await Phone.open(t, server, "stranger");
  const { id } = await publish(server);
  await phone.shows("the item", (items) => items.some((item) => item.id === id));
  await server.unfollow("inside", "ann");
  await phone.shows("nothing of ann", (items) => items.length === 1);
  await server.call("DELETE", "/v1/users/ann/lists/close/inside");
  await server.follow("inside", "ann");
  await phone.shows("the item again", (items) => items.some((item) => item.id === id));
  await server.call("PUT", "/v1/users/ann/lists/close/outside");
  await server.follow("stranger", "ann");
  await stranger.shows("what ann has for all", (items) => items.length === 2);
  assert.ok(!stranger.feed.items().some((item) => item.id === id), "a stranger was no follower when it was accepted");
  const { id: next } = await server.publish("ann", { text: "next" }, { audience: { lists: ["close"] } });
  await stranger.shows("the next one", (items) => items.some((item) => item.id === next));
  await server.drained();
  const feed = async (reader) => (await server.feed(reader)).map((item) => item.id);
  assert.ok((await feed("outside")).includes(next) && !(await feed("outside")).includes(id));
  assert.ok(!(await feed("inside")).includes(next) && (await feed("inside")).includes(id));
});

test("s9: an audience may leave out lists, or be those whom the author follows too", async (t) => {
  const { server } = await start(t);
  await server.follow("ann", "outside");
  const but = await server.publish("ann", { text: "but" }, { audience: { except_lists: ["close"] } });
  const mutual = await server.publish("ann", { text: "mutual" }, { audience: { mutual: true } });
  await server.drained();
  const feeds = async (reader) => (await server.feed(reader)).map((item) => item.id);
  assert.deepEqual(await feeds("outside"), [mutual.id, but.id]);
  assert.deepEqual(await feeds("inside"), []);
  const refused = await server.request("POST", "/v1/items", { author: "ann", body: 1, audience: { lists: ["clsoe"] } });
  assert.deepEqual([refused.status, refused.body.pointer], [422, "/audience"]);
  assert.match(refused.body.detail, /ann has no list clsoe; a list is there while it has members/);
});
