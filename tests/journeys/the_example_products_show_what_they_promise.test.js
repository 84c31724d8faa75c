// The products of examples/ with their own settings: what a reader of each is shown, by the API and by the real SDK.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Phone } from "../actors/phone.js";
import { freePort } from "../actors/port.js";
import { Product } from "../actors/product.js";
import { until } from "../actors/until.js";

/** The ids of items, as they are shown. */
const ids = (items) => items.map(({ id }) => id);

/** Everything that is stored, one line of NDJSON after another. */
async function exported({ url, key }) {
  const text = await (await fetch(`${url}/v1/export`, { headers: { authorization: `Bearer ${key}` } })).text();
  return text.split("\n").sort();
}

/** A product that was filled twice; nothing comes of the second time. */
async function filled(t, name) {
  const product = await Product.start(t, name);
  await product.server.drained();
  const before = await exported(product.server);
  assert.ok(before.length > 50, `the world of ${name} has ${before.length} lines`);
  assert.match(await product.fill(), /^filled {4}http/);
  assert.deepEqual(await exported(product.server), before, "a second fill changes nothing");
  return product;
}

test("weibo: a feed of one-way follows, with a big account, reposts and their originals, and exact counts", async (t) => {
  const { server } = await filled(t, "weibo");
  const { items, people } = await server.page("xia");
  assert.deepEqual(ids(items), ["115", "114", "113", "112", "111", "110", "108", "107", "106", "105", "104", "103", "101", "100"]);
  assert.deepEqual(people.news, { name: "钱塘日报", avatar: "/signs/paper.svg" });
  const by = (id) => items.find((item) => item.id === id);
  assert.deepEqual([by("104").counts, by("104").own], [{ like: 50, comments: 3 }, ["like"]]);
  assert.deepEqual([by("106").ref_item.author, by("106").ref_item.counts.like], ["fu", 70]);
  const { followers } = await server.call("GET", "/v1/authors/news");
  assert.ok(followers > 5, `the newspaper is above pull_above with ${followers} followers`);

  const phone = await Phone.open(t, server, "xia");
  await phone.shows("the page", (shown) => shown.length === items.length);
  await server.publish("news", { text: "快讯" });
  await server.publish("staff", { text: "公告" });
  await phone.shows("what a big account and the account of everyone post", (shown) => shown.length === items.length + 2);
  await phone.agrees();
});

test("weibo: 小明 finds the posts and the person that a reader may see, whatever stands around the words", async (t) => {
  const { server } = await Product.start(t, "weibo");
  const token = await server.token("xia");
  const search = async (what) => server.call("GET", `/v1/search/${what}?q=${encodeURIComponent("小明")}`, undefined, { token });
  const found = await until("the index has all", async () => {
    const { items } = await search("items");
    return items.length === 2 && items;
  }, { seen: () => search("items") });
  assert.deepEqual(ids(found), ["108", "107"]);
  assert.deepEqual((await search("users")).users, [{ user: "ming", name: "王小明", avatar: "/faces/ming-5.svg" }]);
});

test("moments: a post is seen by the friends whom it is for, and by nobody else", async (t) => {
  const { server } = await filled(t, "moments");
  const sees = async (user) => ids((await server.page(user)).items);
  assert.deepEqual(await sees("mama"), ["208", "207", "205", "204", "203", "202"], "family, and her own");
  assert.deepEqual(await sees("wang"), ["206", "203", "201"], "the boss knows nothing of the day at the lake");
  assert.deepEqual(await sees("zhang"), ["206", "205", "203"], "a friend of no list; hong has blocked him");
  assert.deepEqual(await sees("shop"), [], "ming has never added the shop");
  const { items } = await server.call("GET", "/v1/users/ming/outbox", undefined, { token: await server.token("ming") });
  assert.deepEqual(ids(items), ["207", "205", "203"]);

  const [mama, boss] = await Promise.all(["mama", "wang"].map((user) => Phone.open(t, server, user)));
  await mama.subscribed();
  await boss.subscribed();
  await server.publish("ming", { text: "only for the family" }, { audience: { mutual: true, lists: ["family"] } });
  await server.publish("ming", { text: "for all friends" }, { audience: { mutual: true } });
  await mama.shows("both", (shown) => shown.length === 8);
  await boss.shows("the one for all friends", (shown) => shown.length === 4);
  for (const phone of [mama, boss]) await phone.agrees();
});

test("moments: a viewer reads the comments of friends and of the author of the post, and no others", async (t) => {
  const { server } = await Product.start(t, "moments");
  const said = async (user, item = "205") => {
    const { comments } = await server.call("GET", `/v1/items/${item}/comments?order=oldest`, undefined, { token: await server.token(user) });
    return comments.map(({ author }) => author);
  };
  assert.deepEqual(await said("ming"), ["hong", "ming", "zhang"]);
  assert.deepEqual(await said("hong"), ["hong", "ming"], "she has blocked zhang");
  assert.deepEqual(await said("mama"), ["hong", "ming"], "zhang is no friend of hers");
  assert.deepEqual(await said("zhang"), ["ming", "zhang"]);
  assert.deepEqual(await said("qiang", "203"), ["wang", "ming"], "a friend of both");
  assert.deepEqual(await said("mama", "203"), ["ming"], "an answer to somebody whom she does not know");
});

test("notifications: two hundred likes are one line, and what one device has seen has no badge on another", async (t) => {
  const { server } = await filled(t, "notifications");
  const phone = await Phone.open(t, server, "yue", { device: "ios", channel: "notifications", unread: true });
  const tablet = await Phone.open(t, server, "yue", { device: "tablet", channel: "notifications", unread: true });
  await phone.shows("the lines", (items) => items.length === 8);
  await tablet.waitFor("the badge", () => tablet.unread === 5);
  const [likes] = phone.feed.items();
  assert.deepEqual([likes.kind, likes.body.item, likes.body.count, likes.body.actors], ["like", "302", 200, ["xia", "ming", "lan"]]);
  const kinds = phone.feed.items().map(({ kind }) => kind).sort();
  assert.deepEqual(kinds, ["comment", "comment", "follower", "like", "like", "like", "reply", "repost"]);

  assert.equal((await phone.see()).unread, 0);
  await tablet.waitFor("no badge", () => tablet.unread === 0);
  await server.call("PUT", "/v1/items/302/reactions/like/late");
  await phone.shows("a new line", ([first]) => first.body.count === 1);
  await phone.agrees();
});

test("headlines: a reader is shown what people like among what interests, and likes bring an item up on each phone", async (t) => {
  const product = await filled(t, "headlines");
  const { server } = product;
  const all = ["403", "402", "405", "407", "404", "401", "409", "406", "408", "411", "410", "412", "413"];
  assert.deepEqual(ids(await server.feed("xia", "headlines")), all);
  assert.deepEqual(ids(await server.feed("zhou", "headlines")), ["403", "402", "401", "409", "406", "408", "413"]);
  assert.deepEqual(ids(await server.feed("mama", "headlines")), ["405", "407", "404", "401", "406", "411", "410", "412", "413"]);
  const like = async (method) => server.call(method, "/v1/items/402/reactions/like/zhou", undefined, { token: await server.token("zhou") });
  assert.deepEqual((await like("PUT")).counts, { like: 41 }, "a reader who follows nobody may like what is recommended");
  assert.deepEqual((await like("DELETE")).counts, { like: 40 });

  const live = await Phone.open(t, server, "xia", { device: "live", channel: "headlines" });
  const away = await Phone.open(t, server, "xia", { device: "away", channel: "headlines" });
  for (const phone of [live, away]) await phone.shows("the ranking", (items) => ids(items).join() === all.join());
  await away.sleep();
  for (let n = 0; n < 30; n += 1) await server.call("PUT", `/v1/items/408/reactions/like/late-${n}`);
  await product.fill(); // which ranks
  const risen = ["408", ...all.filter((id) => id !== "408")];
  await live.shows("the liked item at the top", (items) => ids(items).join() === risen.join());
  assert.deepEqual(live.ops, ["delete", "add"], "the others have not moved");
  await away.wake();
  await away.shows("the same", (items) => ids(items).join() === risen.join());
  assert.deepEqual(away.feed.items(), live.feed.items(), "who was away ends as who was live");
  // What stands around an item, such as its likes, comes with a page or by the channel of the item, not with a move.
  const listed = (items) => items.map(({ counts, ...item }) => item);
  assert.deepEqual(listed(live.feed.items()), listed(await server.feed("xia", "headlines")), "and both as a page");
  assert.deepEqual([live.reloads, away.reloads], [1, 1], "by the difference, and no page was loaded again");
});

test("the program of an example says what is missing when there is no server, or no key", async () => {
  const product = new Product();
  Object.assign(product, { name: "weibo", port: 0 });
  const says = async (server, wanted) => {
    product.server = { secrets: "/nowhere", ...server };
    await assert.rejects(product.fill(), ({ code, stderr }) => code === 1 && wanted.test(stderr));
  };
  await says({ url: `http://127.0.0.1:${await freePort()}`, key: "none" }, /^nobody answers at http:.*cargo run --release -- --config examples\/weibo\/feedgate.toml$/m);
  await says({ url: "http://127.0.0.1:1", key: "" }, /^there is no key in data\/weibo\/secrets/);
});
