// Clients that are generated from docs/openapi.json compile: nothing in the document is beyond the two usual generators.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { TOOLS } from "../actors/process.js";

const DOCUMENT = fileURLToPath(new URL("../../docs/openapi.json", import.meta.url));
const python = join(TOOLS, "clients", "python", "bin");
const node = join(TOOLS, "clients", "node", "node_modules", ".bin");

/** Runs a program to its end and answers what it wrote; fails with that if the program does. */
async function run(program, args) {
  const env = { ...process.env, PATH: `${python}${delimiter}${process.env.PATH}` };
  const done = promisify(execFile)(program, args, { env, maxBuffer: 64 * 1024 * 1024 });
  const { stdout, stderr } = await done.catch((error) => assert.fail(`${program}: ${error.stdout}${error.stderr}`));
  return stdout + stderr;
}

async function directory(t) {
  const made = await mkdtemp(join(tmpdir(), "feedgate-client-"));
  t.after(() => rm(made, { recursive: true, force: true }));
  return made;
}

test("openapi-python-client makes a client of the whole document, and each of its modules can be imported", async (t) => {
  const made = await directory(t);
  // The generator knows neither NDJSON nor OpenMetrics: the routes with them give bytes, or text.
  const config = join(made, "config.yml");
  const overrides = {
    "application/x-ndjson": "application/octet-stream",
    "application/openmetrics-text; version=1.0.0; charset=utf-8": "text/plain",
  };
  await writeFile(config, JSON.stringify({ content_type_overrides: overrides, post_hooks: [] }));
  const output = join(made, "feedgate_client");
  const arguments_ = ["generate", "--path", DOCUMENT, "--config", config, "--meta", "none", "--output-path", output];
  const said = await run(join(python, "openapi-python-client"), [...arguments_, "--fail-on-warning"]);
  assert.doesNotMatch(said, /warning/i);
  const importAll = `
import importlib, pkgutil, sys
sys.path.insert(0, ${JSON.stringify(made)})
import feedgate_client
names = [m.name for m in pkgutil.walk_packages(feedgate_client.__path__, "feedgate_client.")]
for name in names: importlib.import_module(name)
from feedgate_client.models import Item
item = {"id": "1", "author": "ann", "body": 1, "published_at": 1, "rank": 1, "version": 1, "direct": True}
assert Item.from_dict(item).to_dict() == item
print(len(names))`;
  assert.ok(Number(await run(join(python, "python"), ["-c", importAll])) > 40);
});

test("openapi-generator makes a client of the document that TypeScript compiles", async (t) => {
  const output = await directory(t);
  await run(join(python, "openapi-generator-cli"), ["generate", "-i", DOCUMENT, "-g", "typescript-fetch", "-o", output]);
  const options = ["--noEmit", "--strict", "--target", "es2020", "--module", "commonjs", "--lib", "es2020,dom"];
  await run(join(node, "tsc"), [...options, join(output, "index.ts")]);
});
