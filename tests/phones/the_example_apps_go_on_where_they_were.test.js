// The apps of examples/ against the real server: page one, an older page, live changes, a kill of the app, a kill of the
// server, and a position that the server does not know. A file that cannot be written, one that cannot be read, and one
// of another user. A token that is refused, and one that does not come.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, rmdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { fileURLToPath } from "node:url";

import { Home } from "../actors/home.js";
import { TOOLS } from "../actors/process.js";
import { WebSocketServer } from "../actors/sdk.js";
import { until } from "../actors/until.js";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));
const PAGE = 20;

/** A body that nests as deeply as the server takes it. */
const DEEP = JSON.parse("[".repeat(128) + "]".repeat(128));

/** How each app is started, given a folder for its own use. */
const APPS = {
  node: async (folder) => [process.execPath, await besideItsPackages(folder)],
  python: async () => [join(TOOLS, "python", "bin", "python"), join(EXAMPLES, "app.py")],
  go: async () => [join(TOOLS, "phones", "app-go")],
  java: async () => ["java", "-cp", ["app.jar", "dependency/*"].map((name) => join(TOOLS, "phones", "app-java", name)).join(":"), "App"],
  rust: async () => [join(TOOLS, "phones", "app")],
};

/** A copy of the app in Node, beside which its packages are, as after `npm install` in examples/. */
async function besideItsPackages(folder) {
  for (const name of ["app.mjs", "feed.js", "package.json"]) await cp(join(EXAMPLES, name), join(folder, name));
  await symlink(join(TOOLS, "node", "node_modules"), join(folder, "node_modules")).catch((error) => {
    if (error.code !== "EEXIST") throw error;
  });
  return join(folder, "app.mjs");
}

/** One run of an app: `said` are its lines. */
class Run {
  said = [];

  constructor(t, command, server, file, { user = "bob", key = server.key } = {}) {
    const [program, ...options] = command;
    Object.assign(this, { server, file, user });
    this.child = spawn(program, [...options, user, file], { env: { ...process.env, FEEDGATE_URL: server.url, FEEDGATE_KEY: key } });
    this.child.once("error", (error) => this.said.push(String(error)));
    this.gone = new Promise((resolve) => this.child.once("close", resolve));
    t.after(() => this.kill());
    for (const stream of [this.child.stdout, this.child.stderr]) createInterface({ input: stream }).on("line", (line) => this.said.push(line));
  }

  kill() {
    this.child.kill("SIGKILL");
    return this.gone;
  }

  older() {
    this.child.stdin.write("older\n");
  }

  /** The list that the app has stored, or null. */
  async stored() {
    const kept = JSON.parse(await readFile(this.file, "utf8").catch(() => "null"));
    return kept && { ...kept.feed, user: kept.user };
  }

  /** Waits until the app has said something. */
  says(wanted) {
    return until(`the app says ${wanted}`, () => this.said.some((line) => wanted.test(line)), { seen: () => this.said.slice(-5) });
  }

  /** Waits until the app has stored these items and the position at which they stand. */
  async shows(what, items) {
    await this.server.drained();
    const { position } = await this.server.page(this.user, { limit: 1 });
    const seen = async () => ({ said: this.said.slice(-5), stored: (await this.stored())?.items.length, wanted: items.length, position });
    const there = async () => {
      // A file of the test may be one that no app has written.
      const stored = await this.stored().catch(() => null);
      return isDeepStrictEqual(stored?.items, items) && isDeepStrictEqual(stored.position, position);
    };
    await until(what, there, { seen });
  }
}

for (const [language, commandIn] of Object.entries(APPS)) {
  test(`the example app in ${language} shows the feed, and goes on where it was`, async (t) => {
    const server = await Home.start(t);
    const folder = await mkdtemp(join(tmpdir(), "feedgate-app-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, "bob.json");
    const command = await commandIn(folder);
    const open = (options) => new Run(t, command, server, file, options);
    const newest = async (count) => (await server.feed("bob")).slice(0, count);

    await server.follow("bob", "ann");
    await server.publishMany("ann", PAGE + 10);
    await server.drained();
    const first = open();
    await first.shows("page one", await newest(PAGE));
    first.older();
    await first.shows("the older page", await newest(PAGE + 10));

    await mkdir(`${file}.new`); // no file can be written there
    const { id } = await server.publish("ann", { text: "ümlaut", n: [1, 2.5, null] });
    await server.publish("ann", DEEP);
    const { id: goes } = await server.publish("ann", { text: "goes" });
    await server.call("DELETE", `/v1/items/${goes}`);
    await server.drained();
    await first.says(/^not saved: /);
    await rmdir(`${file}.new`);
    await first.shows("what came live", await newest(PAGE + 12));
    await first.kill();

    await server.call("PATCH", `/v1/items/${id}`, { body: { text: "edited" } });
    await server.publishMany("ann", 130, 100);
    await server.drained();
    const second = open();
    await second.shows("what came while it was dead", await newest(PAGE + 142));
    assert.deepEqual(second.said.filter((line) => line.startsWith("loaded")), [], "it needed no page");
    await server.kill();
    await server.start();
    await server.publish("ann", { text: "after the server's death" });
    await server.drained();
    await second.shows("what came after the server's death", await newest(PAGE + 143));
    await second.kill();

    const { user, ...feed } = await second.stored();
    await writeFile(file, JSON.stringify({ user, feed: { ...feed, position: { ...feed.position, epoch: "lost" } } }));
    const third = open();
    await third.shows("page one instead of a position of another log", await newest(PAGE));
    await third.kill();

    await writeFile(file, (await readFile(file, "utf8")).slice(0, 1000));
    const fourth = open();
    await fourth.shows("page one instead of half a file", await newest(PAGE));
    await fourth.says(/bob\.json cannot be used: /);
    await fourth.kill();

    await server.follow("eve", "dan");
    await server.publish("dan", { text: "for eve" });
    await server.drained();
    const eve = open({ user: "eve" });
    await eve.shows("nothing of the user before", await server.feed("eve"));
    assert.ok(eve.said.includes("loaded page one") && !eve.said.some((line) => line.startsWith("going on")), `it begins anew: ${eve.said}`);
    assert.equal((await eve.stored()).user, "eve");
    await eve.kill();

    const refused = open({ key: "not the key" });
    await refused.says(/^stopped for good: unauthorized/);
    await refused.gone;
  });
}

test("each example app asks for a token again if no answer comes within ten seconds", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "feedgate-app-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await Promise.all(Object.entries(APPS).map(async ([language, commandIn]) => {
    let asked = 0;
    const silent = createServer(() => (asked += 1)).listen(0, "127.0.0.1");
    t.after(() => (silent.closeAllConnections(), silent.close()));
    await once(silent, "listening");
    const sockets = new WebSocketServer({ noServer: true });
    silent.on("upgrade", (request, socket, head) => {
      if (request.headers.upgrade === "websocket") sockets.handleUpgrade(request, socket, head, () => {});
      else asked += 1; // Java asks for HTTP/2 in the same request
    });
    const server = { url: `http://127.0.0.1:${silent.address().port}`, key: "key" };
    const run = new Run(t, await commandIn(folder), server, join(folder, `${language}.json`));
    await until(`${language} asks again`, () => asked > 1, { withinSecs: 120, seen: () => run.said.slice(-5) });
  }));
});
