// The console in Chromium: two phones of bob by the unmodified SDK, and the log beside them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { blank, browser, device, link, misses, open, texts } from "./browser.js";

/** Waits until a phone shows just these texts, the newest first. */
const shows = (phone, wanted) =>
  until(`the phone shows ${wanted}`, async () => (await texts(phone)).join() === wanted.join(), { seen: () => texts(phone) });

/** What the page says of how far a device has come. */
const lane = (page, name) => page.getByRole("img", { name: new RegExp(`^${name}: `) }).getAttribute("aria-label");

const stands = (page, name, where) => until(`${name}: ${where}`, async () => (await lane(page, name)) === `${name}: ${where}`, { seen: () => lane(page, name) });

async function post(page, text) {
  await page.getByLabel("Text of the post").fill(text);
  await page.getByRole("button", { name: "Post" }).click();
}

test("a phone whose network is cut stays where it is in the log, and gets what it missed when it is back", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  const page = await open(t, server);
  const [phone, tablet] = [device(page, "phone"), device(page, "tablet")];
  await post(page, "one");
  await shows(phone, ["one"]);
  await shows(tablet, ["one"]);

  await tablet.getByRole("switch").uncheck();
  for (const text of ["two", "three", "four"]) await post(page, text);
  await shows(phone, ["four", "three", "two", "one"]);
  assert.deepEqual(await texts(tablet), ["one"]);
  await stands(page, "tablet", "3 behind");
  await stands(page, "phone", "has every change");

  await tablet.getByRole("switch").check();
  await shows(tablet, ["four", "three", "two", "one"]);
  await stands(page, "tablet", "has every change");
  assert.equal(await page.locator(".change").count(), await page.locator(".change.add").count());

  await tablet.getByRole("button", { name: /unread on the tablet/ }).click();
  await until("nothing is unread", async () => (await tablet.locator(".item.new").count()) === 0);
  await until("nor on the other device", async () => (await phone.locator(".item.new").count()) === 0);
});

test("the log grows also while no phone has a network", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  const page = await open(t, server);
  await stands(page, "phone", "has every change");
  for (const name of ["phone", "tablet"]) await device(page, name).getByRole("switch").uncheck();
  await server.publish("ann", { text: "nobody is there" });
  await stands(page, "phone", "1 behind");
  await stands(page, "tablet", "1 behind");
});

test("a phone that misses a change loads page one, and asks again while that is refused", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  const page = await blank(await browser(t));
  await misses(page, "missed", 2);
  await page.goto(await link(server));
  const [phone, tablet] = [device(page, "phone"), device(page, "tablet")];
  await post(page, "one");
  for (const each of [phone, tablet]) await shows(each, ["one"]);
  await server.publish("ann", { text: "missed" });
  await server.drained();
  await server.publish("ann", { text: "three" });
  for (const each of [phone, tablet]) await shows(each, ["three", "missed", "one"]);
});

test("an edit and a delete on one phone arrive on the other", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  await server.publish("ann", { text: "frist" });
  await server.drained();
  const page = await open(t, server);
  const [phone, tablet] = [device(page, "phone"), device(page, "tablet")];
  await shows(phone, ["frist"]);
  await phone.getByRole("button", { name: "Edit" }).click();
  await phone.getByLabel("New text").fill("first");
  await phone.getByLabel("New text").press("Enter");
  await shows(tablet, ["first"]);
  await tablet.getByRole("button", { name: "Delete" }).click();
  await shows(phone, []);
});

test("a phone can be another reader's, who then has a log of her own", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  await server.follow("ann", "bob");
  const page = await open(t, server);
  await device(page, "tablet").getByLabel("Reader of the tablet").selectOption("ann");
  await page.getByRole("region", { name: "The log of ann's inbox" }).waitFor();
  await page.getByRole("region", { name: "The log of bob's inbox" }).waitFor();
  await post(page, "hello bob");
  await shows(device(page, "phone"), ["hello bob"]);
  assert.deepEqual(await texts(device(page, "tablet")), []);
});
