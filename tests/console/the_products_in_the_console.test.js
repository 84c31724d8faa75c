// The products of examples/ in the console: an empty store is filled with one by a click, and its page is shown, by the
// server alone. No program of examples/ runs here.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Product } from "../actors/product.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { blank, browser, device, open, picture, texts } from "./browser.js";

const HOSTILE = '<img src=x onerror="globalThis.broken = true">';
const NAMES = { weibo: "Weibo", moments: "Moments", notifications: "Notifications", headlines: "Headlines" };

const demos = (page) => page.getByRole("region", { name: "Demos" });

/** The post of a feed that holds this text. */
const post = (scope, text) => scope.getByRole("article").filter({ hasText: text });

const like = (server, item, user) => server.call("PUT", `/v1/items/${item}/reactions/like/${user}`);

/** Waits until an element says just this. */
const says = (what, element, wanted) =>
  until(what, async () => (await element.textContent()).trim() === wanted, { seen: () => element.textContent() });

/**
 * A server with the settings of a product, and the page to which a click in the console of its empty store leads.
 * `fails`: a request that fails at first, so that it takes a second click.
 */
async function load(t, product, { fails } = {}) {
  const { server } = await Product.empty(t, product);
  const page = await open(t, server, { viewport: { width: 960, height: 860 } });
  const button = page.getByRole("button", { name: `Load ${NAMES[product]}` });
  await button.waitFor();
  await picture(page, `console-offers-${product}`);
  if (fails) {
    await page.route(fails, (route) => route.abort(), { times: 1 });
    await button.click();
    await page.getByRole("alert").getByText("the gateway does not answer").waitFor();
  }
  await button.click();
  await page.waitForURL(`${server.url}/console/products/${product}/`);
  await page.getByRole("article").first().waitFor();
  return { server, page };
}

/** The page fits a phone, and leads back to the console, which leads to it. */
async function returns(page, product) {
  await page.evaluate(() => Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {}))));
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, `console-${product}`);
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await page.setViewportSize({ width: 960, height: 860 });
  await page.getByRole("link", { name: "Console" }).click();
  await page.getByText(`This store holds ${NAMES[product]}`).waitFor();
  assert.equal(await demos(page).count(), 0);
  assert.equal(await page.getByRole("link", { name: `Open ${NAMES[product]}` }).getAttribute("href"), `/console/products/${product}/`);
}

test("weibo: a click fills an empty store, and the page is that of the example, live", async (t) => {
  const { server, page } = await load(t, "weibo");
  const feed = page.getByRole("feed");
  const likes = post(feed, "凌晨四点的断桥").getByRole("button", { name: "Like" });
  await says("the likes of the bridge", likes, "♥50");
  await like(server, "104", "zhou");
  await says("one from outside", likes, "♥51");
  await likes.click();
  await says("one less: the viewer's own", likes, "♥50");
  await page.getByLabel("有什么新鲜事想分享给大家？").fill("by the key of the console");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await post(feed, "by the key of the console").waitFor();
  await page.getByRole("button", { name: "Follow 唐小月" }).click();
  await post(feed, "环湖一圈").waitFor();
  const [other] = await Promise.all([page.waitForEvent("popup"), page.getByRole("button", { name: "Open a second window" }).click()]);
  await other.getByRole("button", { name: "Follow 苏兰" }).click();
  await other.getByRole("button", { name: "Unfollow 苏兰" }).waitFor();
  await other.close();
  await returns(page, "weibo");
  await until("the phones show its first reader", async () => (await texts(device(page, "phone"))).includes("by the key of the console"));
  await picture(page, "console-holds-weibo");
});

test("moments: a load that fails says so, a second click goes on with it, and two phones show who sees what", async (t) => {
  const { server, page } = await load(t, "moments", { fails: "**/v1/lists/batch" });
  const [mama, boss] = ["first phone", "second phone"].map((name) => page.getByRole("region", { name }));
  await post(mama, "风景真好").getByText("照片里我怎么在闭眼").waitFor();
  await post(boss, "有人看见小明了吗").waitFor();
  assert.equal(await post(boss, "风景真好").count(), 0);
  await like(server, "208", "mama");
  await post(mama, "在学织围巾").getByText("妈妈 and 小明").waitFor();
  await mama.getByLabel("这一刻的想法…").fill("饺子好了");
  await mama.getByRole("button", { name: "Post" }).click();
  await post(mama, "饺子好了").waitFor();
  await returns(page, "moments");
});

test("notifications: a click fills an empty store, the badge counts lines, and the page says what a push takes", async (t) => {
  const { server, page } = await load(t, "notifications");
  await says("five lines are unread", page.locator("#badge"), "5");
  assert.equal(await page.getByRole("switch").count(), 0);
  await page.getByText("push.webhook_url").waitFor();
  await page.getByRole("button", { name: "Fifty people like it" }).click();
  await post(page.getByRole("feed"), "修好了 1998 年的老车").getByText("♥ 52").waitFor();
  await like(server, "303", "xia");
  await post(page.getByRole("feed"), "修好了 1998 年的老车").getByText("♥ 53").waitFor();
  await page.getByRole("button", { name: "Notifications" }).click();
  await post(page.getByRole("feed", { name: "Notifications" }), "林夏, 王小明 and 198 others liked your post").waitFor();
  await returns(page, "notifications");
});

test("headlines: a click fills an empty store, and the page itself ranks what people like from outside", async (t) => {
  const { server, page } = await load(t, "headlines");
  const stars = post(page.getByRole("feed"), "听见了星星");
  const first = () => page.getByRole("article").first().textContent();
  await says("its heat", stars.locator(".heat"), "热度 3");
  await stars.getByRole("button", { name: "Ten people like it" }).click();
  await says("ten more", stars.getByRole("button", { name: "Like", exact: true }), "♥ 12");
  await Promise.all(Array.from({ length: 30 }, (_, n) => like(server, "408", `one-${n}`)));
  await until("it is the first", async () => (await first()).includes("听见了星星"), { seen: first });
  await returns(page, "headlines");
});

test("a server that is set up for no product names each with the command and the settings that it takes", async (t) => {
  const server = await Server.start(t);
  const page = await open(t, server);
  const commands = demos(page).locator("code");
  await until("all four are named", async () => (await commands.count()) === 4);
  const wanted = Object.keys(NAMES).map((name) => `examples/${name}/feedgate.toml`);
  assert.deepEqual(await commands.allTextContents(), wanted.map((file) => `feedgate --config ${file}`));
  assert.deepEqual(await demos(page).getByRole("button").allTextContents(), ["Load demo"]);
  const links = await demos(page).getByRole("link", { name: "its settings" }).evaluateAll((all) => all.map(({ href }) => href));
  for (const [n, link] of links.entries()) assert.equal(await (await fetch(link)).text(), await readFile(new URL(`../../${wanted[n]}`, import.meta.url), "utf8"));
  await picture(page, "console-offers-none");
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
});

test("without a session of the console a product shows nothing and says why, and so it does when the session ends", async (t) => {
  const product = await Product.start(t, "headlines");
  const { server } = product;
  const address = `${server.url}/console/products/headlines/`;
  const stranger = await blank(await browser(t));
  await stranger.goto(address);
  await stranger.getByText("shows nothing without a session of the console").waitFor();
  assert.equal(await stranger.getByRole("article").count(), 0);

  const page = await open(t, server);
  await page.getByRole("link", { name: "Open Headlines" }).click();
  await page.getByRole("article").first().waitFor();
  // The key of a session is good at one process alone, and so until it ends.
  await server.kill();
  await server.start();
  await page.getByText("shows nothing without a session of the console").waitFor();
});

test("what people write is text on the pages of the products, which the browser holds to it", async (t) => {
  const { server } = await Product.start(t, "weibo");
  await server.call("PUT", "/v1/users/ming", { name: HOSTILE, avatar: "https://evil.example/x.png" });
  await server.call("PATCH", "/v1/items/104", { body: { text: HOSTILE, pictures: [HOSTILE, "../x"] } });
  const page = await open(t, server);
  await page.getByText("This store holds Weibo").waitFor();
  await page.getByRole("link", { name: "Open Weibo" }).click();
  await page.locator(".name", { hasText: HOSTILE }).first().waitFor();
  await page.locator(".text", { hasText: HOSTILE }).first().waitFor();
  assert.equal(await page.locator('img[src="x"], img[src^="https"], [onerror]').count(), 0);
  assert.equal(await page.evaluate(() => globalThis.broken), undefined);
  const { headers } = await fetch(`${server.url}/console/products/weibo/`);
  const policy = headers.get("content-security-policy");
  assert.match(policy, /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/);
  assert.doesNotMatch(policy, /unsafe|\*|http/);
  assert.equal(headers.get("x-frame-options"), "DENY");
});
