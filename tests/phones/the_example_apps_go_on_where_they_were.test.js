// The apps of examples/ against the real server: page one, an older page, live changes, a kill of the app, a kill of the
// server, and a position that the server does not know.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { fileURLToPath } from "node:url";

import { Home } from "../actors/home.js";
import { TOOLS } from "../actors/process.js";
import { until } from "../actors/until.js";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));
const PAGE = 20;

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

  constructor(t, command, server, file) {
    const [program, ...options] = command;
    this.server = server;
    this.file = file;
    this.child = spawn(program, [...options, "bob", file], { env: { ...process.env, FEEDGATE_URL: server.url, FEEDGATE_KEY: server.key } });
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

  async stored() {
    return JSON.parse(await readFile(this.file, "utf8").catch(() => "null"));
  }

  /** Waits until the app has stored these items and the position at which they stand. */
  async shows(what, items) {
    await this.server.drained();
    const { position } = await this.server.page("bob", { limit: 1 });
    const seen = async () => ({ said: this.said.slice(-5), stored: (await this.stored())?.items.length, wanted: items.length, position });
    const there = async () => {
      const stored = await this.stored();
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
    const open = () => new Run(t, command, server, file);
    const newest = async (count) => (await server.feed("bob")).slice(0, count);

    await server.follow("bob", "ann");
    await server.publishMany("ann", PAGE + 10);
    await server.drained();
    const first = open();
    await first.shows("page one", await newest(PAGE));
    first.older();
    await first.shows("the older page", await newest(PAGE + 10));

    const { id } = await server.publish("ann", { text: "ümlaut", n: [1, 2.5, null] });
    const { id: goes } = await server.publish("ann", { text: "goes" });
    await server.call("DELETE", `/v1/items/${goes}`);
    await server.drained();
    await first.shows("what came live", await newest(PAGE + 11));
    await first.kill();

    await server.call("PATCH", `/v1/items/${id}`, { body: { text: "edited" } });
    await server.publishMany("ann", 130, 100);
    await server.drained();
    const second = open();
    await second.shows("what came while it was dead", await newest(PAGE + 141));
    assert.deepEqual(second.said.filter((line) => line.startsWith("loaded")), [], "it needed no page");
    await server.kill();
    await server.start();
    await server.publish("ann", { text: "after the server's death" });
    await server.drained();
    await second.shows("what came after the server's death", await newest(PAGE + 142));
    await second.kill();

    const stored = await second.stored();
    await writeFile(file, JSON.stringify({ ...stored, position: { ...stored.position, epoch: "lost" } }));
    await open().shows("page one instead of a position of another log", await newest(PAGE));
  });
}
