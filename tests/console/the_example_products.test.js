// The pages of examples/ in Chromium: what they show of a filled server, what moves by itself, and who is shown what.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { TOOLS } from "../actors/process.js";
import { Product } from "../actors/product.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { blank, browser, misses, picture, visit } from "./browser.js";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

const HOSTILE = '<img src=x onerror="globalThis.broken = true">';

/** A product that was filled, and a window on its page. */
async function open(t, name, { query = "", ...options } = {}) {
  const product = await Product.start(t, name);
  const url = await product.page(t);
  return { server: product.server, url, page: await visit(t, url + query, { viewport: { width: 900, height: 900 }, ...options }) };
}

/** The post of a feed that holds this text. */
const post = (scope, text) => scope.getByRole("article").filter({ hasText: text });

const like = (server, item, user) => server.call("PUT", `/v1/items/${item}/reactions/like/${user}`);

/** Waits until an element says just this. */
const says = (what, element, wanted) =>
  until(what, async () => (await element.textContent()).trim() === wanted, { seen: () => element.textContent() });

/** Nothing on the page is wider than the screen of a phone. */
async function fits(t, url) {
  const page = await visit(t, url, { viewport: { width: 390, height: 844 } });
  await page.getByRole("article").first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
}

test("weibo: likes, comments and posts of others come to the page by themselves", async (t) => {
  const { server, url, page } = await open(t, "weibo", { query: "?as=xia" });
  const feed = page.getByRole("feed");
  const bridge = post(feed, "凌晨四点的断桥");
  await says("the likes of the bridge", bridge.getByRole("button", { name: "Like" }), "♥50");
  await like(server, "104", "zhou");
  await says("one like more", bridge.getByRole("button", { name: "Like" }), "♥51");
  await bridge.getByRole("button", { name: "Like" }).click();
  await says("one less: the viewer's own", bridge.getByRole("button", { name: "Like" }), "♥50");

  await bridge.getByRole("button", { name: "Comments" }).click();
  await bridge.getByText("它收了一条小鱼当片酬").waitFor();
  await bridge.getByLabel("Write a comment").fill("unfinished");
  await server.call("POST", "/v1/items/104/comments", { author: "chef", body: { text: "真好看" } });
  await bridge.getByText("真好看").waitFor();
  assert.equal(await bridge.getByLabel("Write a comment").inputValue(), "unfinished", "what is being written stays");

  await server.publish("news", { text: "快讯：雨停了" });
  await post(feed, "快讯：雨停了").waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, "weibo");
  await fits(t, url);
});

test("weibo: two windows of one user both stay live", async (t) => {
  const { server, url, page } = await open(t, "weibo", { query: "?as=xia" });
  await post(page.getByRole("feed"), "凌晨四点的断桥").waitFor();
  const other = await visit(t, `${url}?as=xia`);
  await post(other.getByRole("feed"), "凌晨四点的断桥").waitFor();
  for (const window of [page, other]) await window.locator("#me .live").waitFor();
  await server.publish("news", { text: "快讯：两扇窗" });
  for (const window of [page, other]) await post(window.getByRole("feed"), "快讯：两扇窗").waitFor();
});

test("weibo: a text whose sending fails stays in its field, and is one post and one comment when it is sent again", async (t) => {
  const { server, page } = await open(t, "weibo", { query: "?as=xia" });
  const bridge = post(page.getByRole("feed"), "凌晨四点的断桥");
  await bridge.getByRole("button", { name: "Comments" }).click();
  for (const [path, label, text] of [
    ["**/actions/post", "有什么新鲜事想分享给大家？", "only one"],
    ["**/items/104/comments", "Write a comment", "only once"],
  ]) {
    // The request is carried out, and its answer is lost.
    await page.route(path, async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    const field = page.getByLabel(label);
    await field.fill(text);
    await field.press("Enter");
    await until("the sending has failed", async () => await field.evaluate(({ readOnly }) => !readOnly));
    await like(server, "104", `late-${text.length}`);
    await says("the post is drawn again", bridge.getByRole("button", { name: "Like" }), text === "only one" ? "♥51" : "♥52");
    assert.equal(await field.inputValue(), text);
    await field.press("Enter");
    await until("the field is empty", async () => (await field.inputValue()) === "");
  }
  const { items } = await server.call("GET", "/v1/users/xia/outbox");
  assert.equal(items.filter(({ body }) => body.text === "only one").length, 1);
  const { comments } = await server.call("GET", "/v1/items/104/comments?limit=100");
  assert.equal(comments.filter(({ body }) => body.text === "only once").length, 1);
});

test("weibo: a repost shows its original as it is now, and says when it is gone", async (t) => {
  const { server, url, page } = await open(t, "weibo", { query: "?as=xia" });
  const repost = post(page.getByRole("feed"), "杯子是我的");
  await repost.getByText("橘猫大福").waitFor();
  await repost.getByText("今天也成功把杯子推下了桌子").waitFor();
  await post(page.getByRole("feed"), "片儿川").getByRole("button", { name: "Repost" }).click();
  await page.getByLabel("Say something about it").fill("一起去");
  await page.getByLabel("Say something about it").press("Enter");
  await post(page.getByRole("feed"), "一起去").locator("blockquote").getByText("片儿川").waitFor();
  await server.call("DELETE", "/v1/items/105");
  await page.goto(`${url}?as=xia`);
  await repost.getByText("This post is not available.").waitFor();
});

test("weibo: the search finds people and posts, and who is followed is in the feed at once", async (t) => {
  const { page } = await open(t, "weibo", { query: "?as=xia" });
  const words = page.getByRole("searchbox");
  await until("the search finds both", async () => {
    await words.fill("小明");
    await words.press("Enter");
    await page.getByText("Found for").waitFor();
    return (await page.getByRole("region", { name: "Posts found" }).getByRole("article").count()) === 2;
  });
  await page.getByRole("region", { name: "People found" }).getByText("王小明").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Follow 唐小月" }).click();
  await post(page.getByRole("feed"), "环湖一圈").waitFor();
  await page.getByRole("button", { name: "Unfollow 唐小月" }).click();
  await post(page.getByRole("feed"), "环湖一圈").waitFor({ state: "detached" });
});

test("weibo: a page that misses a change loads its list again, and asks until it comes", async (t) => {
  const product = await Product.start(t, "weibo");
  const { server } = product;
  const page = await blank(await browser(t));
  await misses(page, "missed");
  await page.goto(`${await product.page(t)}?as=xia`);
  const feed = page.getByRole("feed");
  await post(feed, "凌晨四点的断桥").waitFor();
  let asked = 0;
  await page.route("**/v1/users/xia/feed?**", (route) => ((asked += 1) > 2 ? route.continue() : route.abort()));
  for (const text of ["missed", "shows the gap"]) {
    await server.publish("news", { text });
    await server.drained();
  }
  await post(feed, "shows the gap").waitFor();
  await post(feed, "missed").waitFor();
  assert.equal(asked, 3);
});

test("weibo: a page to whose user the backend gives no token any more stops asking", async (t) => {
  const product = await Product.start(t, "weibo");
  const page = await blank(await browser(t));
  await page.addInitScript(() => {
    let kept;
    Object.defineProperty(globalThis, "Centrifuge", {
      get: () => kept,
      set: (Sdk) => (kept = class extends Sdk {
        constructor(...options) {
          super(...options);
          globalThis.client = this;
        }
      }),
    });
  });
  await page.goto(`${await product.page(t)}?as=xia`);
  await page.locator("#me .live").waitFor();
  await page.route("**/session?as=xia", (route) => route.fulfill({ status: 401, json: { error: "signed out" } }));
  await product.server.call("POST", "/v1/users/xia/revoke");
  await until("the SDK has stopped", () => page.evaluate(() => client.state === "disconnected"));
});

test("weibo: a search waits until the page knows who searches", async (t) => {
  const { page } = await open(t, "weibo", { query: "?as=xia" });
  let answer;
  const answered = new Promise((resolve) => (answer = resolve));
  await page.route("**/session?as=xia", (route) => answered.then(() => route.continue()));
  await page.reload();
  await page.getByRole("searchbox").fill("小明");
  await page.getByRole("searchbox").press("Enter");
  answer();
  await page.getByText("Found for").waitFor();
});

test("what people write is text on each page, a name as well as a post", async (t) => {
  for (const [name, user, item] of [["weibo", "ming", "104"], ["moments", "hong", "208"], ["headlines", "news", "401"], ["notifications", "xia", null]]) {
    const product = await Product.start(t, name);
    const { server } = product;
    const url = await product.page(t);
    await server.call("PUT", `/v1/users/${user}`, { name: HOSTILE, avatar: "https://evil.example/x.png" });
    if (item) await server.call("PATCH", `/v1/items/${item}`, { body: { text: HOSTILE, pictures: [HOSTILE, "../x"] } });
    if (item) await server.call("POST", `/v1/items/${item}/comments`, { author: user, body: { text: HOSTILE } });
    const page = await visit(t, url, { viewport: { width: 1000, height: 900 } });
    if (!item) await page.getByRole("button", { name: "Notifications" }).click();
    await page.locator(".name", { hasText: HOSTILE }).first().waitFor();
    if (item) await page.locator(".text", { hasText: HOSTILE }).first().waitFor();
    assert.equal(await page.evaluate(() => globalThis.broken), undefined, name);
    assert.equal(await page.locator('img[src="x"], img[src^="https"], [onerror]').count(), 0, name);
  }
});

test("moments: two phones show who sees what, and a post for the family comes to no colleague", async (t) => {
  const { server, page, url } = await open(t, "moments");
  const [mama, boss] = ["first phone", "second phone"].map((name) => page.getByRole("region", { name }));
  await post(mama, "风景真好").getByText("some friends").waitFor();
  await post(boss, "有人看见小明了吗").waitFor();
  assert.equal(await post(boss, "风景真好").count(), 0);
  await post(mama, "风景真好").getByText("照片里我怎么在闭眼").waitFor();
  assert.equal(await post(mama, "风景真好").getByText("病得很有品位").count(), 0, "who says it is no friend of hers");
  await picture(page, "moments");

  await like(server, "208", "mama");
  await post(mama, "在学织围巾").getByText("妈妈 and 小明").waitFor();
  // The third is no friend of mama's, so the number that she is told stays.
  const ops = [["add", "hong"], ["remove", "ming"], ["add", "qiang"]].map(([op, user]) => ({ op, item: "208", kind: "like", user }));
  await server.call("POST", "/v1/reactions/batch", { ops });
  await post(mama, "在学织围巾").getByText("小红 and 妈妈").waitFor();
  await page.getByLabel("User of the second phone").selectOption("ming");
  await boss.getByLabel("Who may see it").selectOption("Only family");
  await boss.getByLabel("这一刻的想法…").fill("only for you");
  await boss.getByRole("button", { name: "Post" }).click();
  await post(mama, "only for you").waitFor();
  await page.getByLabel("User of the second phone").selectOption("wang");
  await post(boss, "新版本上线").waitFor();
  assert.equal(await post(boss, "only for you").count(), 0);
  await page.getByLabel("User of the second phone").selectOption("hong");
  await post(boss, "风景真好").getByText("照片里我怎么在闭眼").waitFor();
  assert.equal(await boss.getByText("病得很有品位").count(), 0, "hong has blocked who says it");
  await page.getByLabel("User of the second phone").selectOption("ming");
  await post(boss, "风景真好").getByText("病得很有品位").waitFor();
  await page.getByLabel("User of the second phone").selectOption("shop");
  await boss.getByText("Moments are for friends on both sides").waitFor();
  await fits(t, url);
});

/** Keeps sessions of this user from a page until `release`, and has the connections that the page opens from now on. */
async function slow(page, user) {
  const [opened, connections] = [[], new Set()];
  page.on("websocket", (connection) => {
    opened.push(connection);
    connections.add(connection);
    connection.on("close", () => connections.delete(connection));
  });
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(`**/session?as=${user}`, (route) => released.then(() => route.continue()));
  return { opened, connections, release };
}

test("moments: of two users who are chosen one after another the phone is the second, and has one connection", async (t) => {
  const { page } = await open(t, "moments");
  const phone = page.getByRole("region", { name: "second phone" });
  const choice = page.getByLabel("User of the second phone");
  await post(phone, "有人看见小明了吗").waitFor();
  // The first phone has its connection by now, so that a later connection belongs to the second phone.
  await post(page.getByRole("region", { name: "first phone" }), "风景真好").waitFor();
  const { opened, connections, release } = await slow(page, "ming");
  await choice.selectOption("ming");
  await choice.selectOption("shop");
  await phone.getByText("Moments are for friends on both sides").waitFor();
  const [answer] = await Promise.all([page.waitForResponse("**/session?as=ming"), release()]);
  await answer.finished();
  // The page connects for the late answer too, and then closes that connection.
  await until("one of two connections is left", () => opened.length === 2 && connections.size === 1);
  assert.equal(await choice.inputValue(), "shop");
  await phone.getByText("Moments are for friends on both sides").waitFor();
});

test("notifications: a phone that is locked while it opens has one connection once it is unlocked", async (t) => {
  const { page } = await open(t, "notifications");
  const lock = page.getByRole("switch");
  await says("five lines are unread", page.locator("#badge"), "5");
  await lock.check();
  const { connections, release } = await slow(page, "yue");
  await lock.uncheck();
  await lock.check();
  await lock.uncheck();
  release();
  await until("the phone is open", () => page.getByRole("button", { name: "Notifications" }).isEnabled());
  await until("one connection is left", () => connections.size === 1);
  assert.equal(await page.locator("#trouble").textContent(), "");
});

test("notifications: a badge counts lines, the open list is seen, and a locked phone gets a push", async (t) => {
  const { server, page, url } = await open(t, "notifications", { viewport: { width: 880, height: 780 } });
  await says("five lines are unread", page.locator("#badge"), "5");
  await page.getByRole("button", { name: "Notifications" }).click();
  const lines = page.getByRole("feed", { name: "Notifications" });
  await post(lines, "林夏, 王小明 and 198 others liked your post").waitFor();
  await page.locator("#badge").waitFor({ state: "hidden" });
  const { unread } = await server.call("GET", "/v1/users/yue/seen?name=notifications");
  assert.equal(unread, 0);
  await picture(page, "notifications");

  await page.getByRole("button", { name: "Posts" }).click();
  await page.getByRole("button", { name: "Fifty people like it" }).click();
  await post(page.getByRole("feed"), "修好了 1998 年的老车").getByText("♥ 52").waitFor();
  await says("one line is unread", page.locator("#badge"), "1");
  await page.getByRole("button", { name: "Notifications" }).click();
  await post(lines, "and 48 others liked your post").waitFor();
  await page.getByRole("switch").check();
  await page.getByRole("button", { name: "A new follower" }).click();
  const push = page.getByRole("article", { name: "Push notification" });
  await push.getByText("follows you").waitFor();
  await page.getByRole("switch").uncheck();
  await says("one line is unread", page.locator("#badge"), "1");
  await fits(t, url);
});

test("headlines: likes move an item up while one looks, for each reader by itself", async (t) => {
  const { server, page, url } = await open(t, "headlines", { query: "?as=xia" });
  const feed = page.getByRole("feed");
  const order = (window) => window.getByRole("article").evaluateAll((all) => all.map(({ dataset }) => dataset.key).join());
  const shows = (what, wanted, window = page) => until(what, async () => (await order(window)) === wanted.join(), { seen: () => order(window) });
  const all = ["403", "402", "405", "407", "404", "401", "409", "406", "408", "411", "410", "412", "413"];
  const first = (...ids) => [...ids, ...all.filter((id) => !ids.includes(id))];
  await shows("the ranking", all);
  const stars = post(feed, "听见了星星");
  await says("its heat", stars.locator(".heat"), "热度 3");
  await page.evaluate(() => {
    const { animate } = Element.prototype;
    globalThis.moved = new Set();
    Element.prototype.animate = function (...how) {
      moved.add(this.dataset.key);
      return animate.apply(this, how);
    };
  });
  await stars.getByRole("button", { name: "Ten people like it" }).click();
  await shows("ten likes bring it up by four", ["403", "402", "405", "407", "408", "404", "401", "409", "406", "411", "410", "412", "413"]);
  assert.ok(await page.evaluate(() => moved.has("408") && moved.has("404") && !moved.has("403")), "what has another place moves there");
  await stars.getByRole("button", { name: "Ten people like it" }).click();
  await shows("and ten more to the second place", first("403", "408"));
  await says("the likes", stars.getByRole("button", { name: "Like", exact: true }), "♥ 22");
  await stars.locator(".rose").waitFor();
  assert.equal(await post(feed, "湖边队").locator(".rose").count(), 0, "the first has not risen");
  await page.mouse.move(0, 0);
  await page.evaluate(() => Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {}))));
  await picture(page, "headlines");

  const still = await visit(t, `${url}?as=zhou`, { viewport: { width: 390, height: 844 }, reducedMotion: "reduce" });
  const his = ["403", "408", "402", "401", "409", "406", "413"];
  await shows("what interests another reader", his, still);
  await still.evaluate(() => (Element.prototype.animate = () => (globalThis.moved = true)));
  assert.equal(await still.evaluate(() => document.documentElement.scrollWidth), 390);
  for (const user of ["one", "two", "three", "four"]) await like(server, "408", user);
  await stars.getByRole("button", { name: "Like", exact: true }).click();
  await shows("the reader's own like makes it the first", first("408"));
  await shows("also for the other reader", ["408", ...his.filter((id) => id !== "408")], still);
  assert.equal(await still.evaluate(() => globalThis.moved), undefined, "nothing moves for whom motion is too much");
  await page.getByRole("button", { name: "Breaking news" }).click();
  for (const window of [page, still]) await window.getByRole("article").filter({ hasText: "快讯" }).waitFor();
});

test("the small page shows a feed, and asks for page one until it comes if a change is missing", async (t) => {
  const site = createServer(async ({ url }, response) => {
    const folder = url.startsWith("/node_modules/") ? join(TOOLS, "node") : EXAMPLES;
    const kind = url.endsWith(".html") ? "text/html" : "text/javascript";
    response.setHeader("content-type", kind).end(await readFile(join(folder, url)).catch(() => ""));
  });
  await once(site.listen(0, "127.0.0.1"), "listening");
  t.after(() => site.close());
  const origin = `http://127.0.0.1:${site.address().port}`;
  const server = await Server.start(t, { config: `[gateway]\nallowed_origins = ["${origin}"]\n` });
  await server.follow("bob", "ann");
  const page = await blank(await browser(t));
  await misses(page, "missed", 2);
  await page.goto(`${origin}/page.html`);
  await page.getByLabel("WebSocket").fill(`${server.url.replace("http", "ws")}/connection/websocket`);
  await page.getByLabel("Token").fill(await server.token("bob"));
  await page.getByRole("button", { name: "Connect" }).click();
  await says("it is live", page.getByRole("status"), "live");
  for (const text of ["one", "missed", "three"]) {
    await server.publish("ann", { text });
    await server.drained();
  }
  const items = page.locator("#items li");
  await until("all three are there", async () => (await items.count()) === 3, { seen: () => items.allTextContents() });
  await says("it is live again", page.getByRole("status"), "live");
});

test("the backend of an example answers its own page alone, and none but the users of the example", async (t) => {
  const product = await Product.start(t, "moments");
  const { port, origin } = new URL(await product.page(t));
  const ask = (path, { method = "GET", body, ...headers } = {}) => new Promise((resolve, reject) => {
    const asked = request({ port, host: "127.0.0.1", path, method, headers }, (answer) => resolve(answer.resume().statusCode));
    asked.on("error", reject).end(body);
  });
  assert.equal(await ask("/session?as=mama"), 200);
  assert.equal(await ask("/session?as=mama", { host: `evil.example:${port}` }), 403, "a name that leads to the loopback");
  assert.equal(await ask("/session?as=nobody"), 404);
  const body = JSON.stringify({ as: "mama", text: "x" });
  const json = { "content-type": "application/json" };
  assert.equal(await ask("/actions/post", { method: "POST", body, "content-type": "text/plain" }), 415, "what a form of another site sends");
  assert.equal(await ask("/actions/post", { method: "POST", body: JSON.stringify({ as: "nobody", text: "x" }), ...json }), 404);
  assert.equal(await ask("/actions/constructor", { method: "POST", body, ...json }), 404);
  assert.equal(await ask("/push", { method: "POST", body: '{"notifications":[]}', ...json }), 401, "not signed");
  for (const path of ["/moments/fill.mjs", "/moments/..%2f..%2fCargo.toml", "/moments/feedgate.toml", "/weibo/index.html"]) assert.equal(await ask(path), 404, path);
  const { headers } = await fetch(`${origin}/moments/`);
  assert.match(headers.get("content-security-policy"), /script-src 'self'.*require-trusted-types-for 'script'/);
});
