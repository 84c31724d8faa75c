// Chromium, as Debian has it, on the console of a server.
//
//     const page = await open(t, server);              a window on the console, by a link of `feedgate console`
//     const phone = device(page, "tablet");            one of its phones
//     const other = await visit(t, url);               a window on another page of ours, such as one of examples/
//
// A test fails if the page breaks its own content security policy, or throws.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";

import { TOOLS } from "../actors/process.js";

const require = createRequire(join(TOOLS, "console", "package.json"));
const { chromium } = require("playwright-core");

/** Chromium refuses its sandbox to root. */
const ARGUMENTS = process.getuid() === 0 ? ["--no-sandbox"] : [];

/** How long Chromium and its pages may take for one step: a machine under load is slow. */
const PATIENT_MS = 300_000;

/** What the command `feedgate console` prints for a running server: a link with a ticket. */
export async function link(server) {
  const { stdout } = await promisify(execFile)(join(TOOLS, "bin", "feedgate"), ["console", "--url", server.url, "--key", server.key]);
  return stdout.trim();
}

/** Starts Chromium; it ends with the test. */
export async function browser(t) {
  const started = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS, timeout: PATIENT_MS });
  t.after(() => started.close());
  return started;
}

/** An empty page with cookies and storage of its own. `options` are those of a Playwright context. */
export async function blank(browser, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENT_MS);
  return page;
}

/** A window on the console. `options` are those of a Playwright context, such as `colorScheme`. */
export const open = async (t, server, options) => visit(t, await link(server), options);

/** A window on a page of ours. */
export async function visit(t, url, options = {}) {
  const page = await blank(await browser(t), { viewport: { width: 1280, height: 800 }, ...options });
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => /Content.Security.Policy|Trusted/i.test(message.text()) && wrong.push(message.text()));
  t.after(() => assert.deepEqual(wrong, []));
  await page.goto(url);
  return page;
}

/** The devices of a page miss the push that holds this text. Then so many of their questions for a page are refused. */
export async function misses(page, text, refusals = 0) {
  let left = 0;
  await page.routeWebSocket("**/connection/websocket", (device) => {
    const server = device.connectToServer();
    // A frame has a message in each line.
    const pass = (to, frame, passes) => {
      const lines = frame.split("\n").filter((line) => passes(line));
      if (lines.length > 0) to.send(lines.join("\n"));
    };
    server.onMessage((frame) => pass(device, frame, (line) => {
      if (!line.includes(text) || !line.startsWith('{"push"')) return true;
      left = refusals;
      return false;
    }));
    device.onMessage((frame) => pass(server, frame, (line) => {
      const { id, rpc } = JSON.parse(line);
      if (rpc?.method !== "page" || left === 0) return true;
      left -= 1;
      device.send(JSON.stringify({ id, error: { code: 100, message: "no page now" } }));
      return false;
    }));
  });
}

/** Leaves a picture of the page beside the logs of the tests. */
export async function picture(page, name) {
  await mkdir(join(TOOLS, "logs"), { recursive: true });
  await page.screenshot({ path: join(TOOLS, "logs", `${name}.png`) });
}

/** One of the phones of the page, by the name of its device. */
export const device = (page, name) => page.getByRole("article", { name });

/** The texts that a phone shows, the newest first. */
export const texts = (phone) => phone.locator(".item .text").allTextContents();
