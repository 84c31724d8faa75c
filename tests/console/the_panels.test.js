// The rest of the console in Chromium: the demo, people, the reason why, the node; also by keyboard and on a phone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { device, open, texts } from "./browser.js";

const panel = (page, name) => page.getByRole("region", { name, exact: true });

const has = (phone, text) => until(`the phone shows ${text}`, async () => (await texts(phone)).includes(text));
const lacks = (phone, text) => until(`the phone no longer shows ${text}`, async () => !(await texts(phone)).includes(text));

/** A console on a store that the demo has filled. */
async function demo(t, options) {
  const server = await Server.start(t);
  const page = await open(t, server, options);
  await page.getByRole("button", { name: "Load demo" }).click();
  await has(device(page, "phone"), "Last boat is in. Good night!");
  return { server, page };
}

test("the demo fills an empty store, and is offered for no other", async (t) => {
  const { server, page } = await demo(t);
  await page.getByRole("button", { name: "Load demo" }).waitFor({ state: "detached" });
  assert.ok((await server.call("GET", "/v1/stats")).archive.items > 10);
});

test("what a proxy says in the place of the gateway is shown as long as it says it", async (t) => {
  const server = await Server.start(t);
  const page = await open(t, server);
  await page.route("**/v1/**", (route) => route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" }));
  await page.getByRole("alert").filter({ hasText: "502: <h1>Bad Gateway</h1>" }).waitFor();
  await page.unroute("**/v1/**");
  await page.getByRole("alert").waitFor({ state: "hidden" });
});

test("what keeps the panel or the logs from being read stays shown while the other is read", async (t) => {
  const server = await Server.start(t);
  const page = await open(t, server);
  const alert = page.getByRole("alert");
  const [logs, panel] = ["**/v1/users/*/changes?*", "**/v1/stats"];
  for (const [refused, read] of [[panel, logs], [logs, panel]]) {
    await page.route(refused, (route) => route.fulfill({ status: 502, body: "Bad Gateway" }));
    await alert.filter({ hasText: "502: Bad Gateway" }).waitFor();
    await alert.evaluate((element) => {
      window.emptied = false;
      const look = new MutationObserver(() => (window.emptied ||= element.textContent === ""));
      look.observe(element, { childList: true, characterData: true, subtree: true });
    });
    // Once the third of these has come, the page has drawn what the second one said.
    for (let reads = 0; reads < 3; reads += 1) await page.waitForResponse(read);
    assert.equal(await page.evaluate(() => window.emptied), false, `${refused} is refused, and ${read} is read`);
    await page.unroute(refused);
    await alert.waitFor({ state: "hidden" });
  }
});

test("a mute and an unfollow take posts off the phones, and the page says why", async (t) => {
  const { page } = await demo(t);
  const [people, phone] = [panel(page, "People"), device(page, "phone")];
  const asked = () => panel(page, "Why").getByRole("status").textContent();
  const why = async (verdict, rule) => {
    await page.getByRole("button", { name: "Why", exact: true }).click();
    await until(`${verdict} by ${rule}`, async () => (await asked().catch(() => "")) === `bob ${verdict}`);
    await panel(page, "Why").getByText(rule).waitFor();
    await page.getByRole("button", { name: "People" }).click();
  };
  await why("sees it", "bob follows ann");
  await people.getByRole("button", { name: "bob has muted ann" }).click();
  await lacks(phone, "Last boat is in. Good night!");
  await why("does not see it", "bob has muted ann");
  await people.getByRole("button", { name: "bob has muted ann" }).click();
  await has(phone, "Last boat is in. Good night!");
  await people.getByRole("button", { name: "bob follows ann" }).click();
  await lacks(phone, "Last boat is in. Good night!");
  await why("does not see it", "bob does not follow ann");
});

test("an account that was made big is pulled, live as before", async (t) => {
  const { server, page } = await demo(t);
  await panel(page, "People").getByRole("button", { name: "ann is a big account" }).click();
  await until("ann is pulled", async () => (await server.call("GET", "/v1/authors/ann")).class === "pull");
  await page.getByLabel("Text of the post").fill("from a big account");
  await page.getByLabel("Text of the post").press("Enter");
  for (const name of ["phone", "tablet"]) await has(device(page, name), "from a big account");
});

test("the node shows its figures and the sessions, and a session can be ended", async (t) => {
  const { page } = await demo(t);
  await page.getByRole("button", { name: "Node" }).click();
  const pool = panel(page, "Node").getByRole("row");
  await until("both devices are in the pool, at one position", async () => {
    const rows = await pool.allTextContents();
    const at = rows.flatMap((row) => row.match(/\d+:\d+/) ?? []);
    return at.length === 2 && new Set(at).size === 1;
  });
  await panel(page, "Node").getByRole("button", { name: "End the session of bob's tablet" }).click();
  await device(page, "tablet").getByText("kicked").or(device(page, "tablet").getByText("connecting")).first().waitFor();
});

test("the story can be played by keyboard alone", async (t) => {
  const { page } = await demo(t);
  const focus = (locator) => until("the focus is there", async () => {
    await page.keyboard.press("Tab");
    return locator.evaluate((element) => element === document.activeElement);
  });
  const network = device(page, "tablet").getByRole("switch");
  await focus(network);
  await page.keyboard.press("Space");
  await device(page, "tablet").getByText("no network").waitFor();
  await focus(page.getByLabel("Text of the post"));
  await page.keyboard.type("typed");
  await page.keyboard.press("Enter");
  await has(device(page, "phone"), "typed");
  assert.ok(!(await texts(device(page, "tablet"))).includes("typed"));
  await focus(network);
  await page.keyboard.press("Space");
  await has(device(page, "tablet"), "typed");
});

test("on a phone nothing is wider than the screen, and who wants no motion sees none", async (t) => {
  const { page } = await demo(t, { viewport: { width: 390, height: 844 }, colorScheme: "dark", reducedMotion: "reduce" });
  const moves = await page.evaluate(() => {
    const styles = [...document.querySelectorAll("*")].map((element) => getComputedStyle(element));
    return styles.some(({ animationName, transitionDuration }) => animationName !== "none" || transitionDuration !== "0s");
  });
  assert.equal(moves, false);
  for (const name of ["People", "Why", "Node"]) {
    await page.getByRole("button", { name, exact: true }).click();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, name);
  }
});
