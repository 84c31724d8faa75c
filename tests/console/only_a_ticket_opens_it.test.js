// Security of the console: who gets in, what the browser lets its page do, and where its files come from.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { TOOLS } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { blank, browser, device, link, open, texts } from "./browser.js";

const HOSTILE = [
  "<script>globalThis.broken = true</script>",
  '<img src=x onerror="globalThis.broken = true">',
  "<svg onload=globalThis.broken=true>",
  "${globalThis.broken = true}",
  "javascript:globalThis.broken=true",
  "</p></li><iframe srcdoc='<script>parent.broken=true</script>'>",
];

test("a link opens the console once, and its ticket is nowhere afterwards", async (t) => {
  const server = await Server.start(t, { config: 'log = "trace"\n' });
  const chromium = await browser(t);
  const [address, page] = [await link(server), await blank(chromium)];
  const ticket = address.split("#ticket=")[1];
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(address);
  await device(page, "phone").waitFor();
  assert.equal(page.url(), `${server.url}/`);
  await page.reload();
  await device(page, "phone").waitFor();

  const other = await blank(chromium);
  await other.goto(address);
  await other.getByText("this ticket was used before").waitFor();
  await other.reload();
  await other.getByText("feedgate console").waitFor();
  assert.ok(asked.length > 10 && asked.every((url) => url.startsWith(server.url) && !url.includes(ticket)), asked.join("\n"));
  const key = await page.evaluate(() => sessionStorage.getItem("feedgate.key"));
  const log = server.lines(/./).join("\n");
  assert.ok(log.length > 1000 && !log.includes(ticket) && !log.includes(key), "neither is logged");
});

test("a tab whose session has ended asks for nothing more, and a new link opens it again", async (t) => {
  const server = await Server.start(t);
  const page = await blank(await browser(t));
  await page.clock.install();
  await page.goto(await link(server));
  await device(page, "phone").waitFor();
  // The key of a session is good at one process alone.
  await server.kill();
  await server.start();
  await page.getByText("This session has ended").waitFor();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.clock.runFor(10_000);
  assert.deepEqual(asked, []);
  await page.goto(await link(server));
  await device(page, "phone").waitFor();
  assert.equal(page.url(), `${server.url}/`);
});

test("what people write is shown as text, whatever it is", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  for (const text of HOSTILE) await server.publish("ann", { text });
  await server.publish("ann", ["<b>", { text: 1 }]);
  await server.drained();
  const page = await open(t, server);
  const wanted = [JSON.stringify(["<b>", { text: 1 }]), ...[...HOSTILE].reverse()];
  const phone = device(page, "phone");
  await until("the phone shows them", async () => (await texts(phone)).length === wanted.length);
  assert.deepEqual(await texts(phone), wanted);
  assert.equal(await page.evaluate(() => globalThis.broken), undefined);
  assert.equal(await page.locator("iframe, img, svg, script:not([src])").count(), 0);
});

test("the browser itself refuses to make HTML of text, to run a text, and to show the page in a frame", async (t) => {
  const server = await Server.start(t);
  const page = await blank(await browser(t));
  await page.goto(server.url);
  await page.getByText("shows nothing without a ticket").waitFor();
  const tried = await page.evaluate(async () => {
    const refused = (attempt) => {
      try {
        attempt();
        return false;
      } catch {
        return true;
      }
    };
    return {
      html: refused(() => (document.body.innerHTML = "<b>x</b>")),
      policy: refused(() => trustedTypes.createPolicy("mine", { createHTML: (text) => text })),
      script: refused(() => (document.createElement("script").text = "broken = true")),
      fetched: await fetch("https://example.com/").then(() => false, () => true),
    };
  });
  assert.deepEqual(tried, { html: true, policy: true, script: true, fetched: true });
  const { headers } = await fetch(server.url);
  assert.match(headers.get("content-security-policy"), /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/);
  assert.doesNotMatch(headers.get("content-security-policy"), /unsafe|\*|data:/);
  assert.equal(headers.get("x-frame-options"), "DENY");
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("referrer-policy"), "no-referrer");
});

test("the page may connect to its own gateway, whatever other pages are allowed", async (t) => {
  const server = await Server.start(t, { config: '[gateway]\nallowed_origins = ["https://app.example"]\n' });
  const page = await open(t, server);
  await device(page, "phone").getByText("online").waitFor();
});

test("the SDK and the library of the page are the files that npm has, byte for byte", async (t) => {
  const server = await Server.start(t);
  const packages = { centrifuge: join(TOOLS, "node", "node_modules", "centrifuge", "dist"), "lit-html": join(TOOLS, "console", "node_modules", "lit-html") };
  const files = ["centrifuge/centrifuge.js", "lit-html/lit-html.js", "lit-html/directive.js", "lit-html/directive-helpers.js", "lit-html/directives/repeat.js"];
  for (const file of files) {
    const served = await (await fetch(`${server.url}/console/vendor/${file}`)).text();
    const [name, ...rest] = file.split("/");
    assert.equal(served, await readFile(join(packages[name], ...rest), "utf8"), file);
  }
});
