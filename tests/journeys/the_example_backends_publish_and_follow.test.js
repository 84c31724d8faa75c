import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Home } from "../actors/home.js";
import { TOOLS } from "../actors/process.js";

const example = (name) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
const python = join(TOOLS, "python", "bin", "python");

for (const [language, program, script] of [
  ["node", process.execPath, example("backend.mjs")],
  ["python", python, example("backend.py")],
]) {
  const run = (server, key, text) =>
    promisify(execFile)(program, [script, text], { env: { FEEDGATE_URL: server.url, FEEDGATE_KEY: key } });

  test(`the example backend in ${language} publishes, waits for its post, and prints the follower's feed`, async (t) => {
    const server = await Home.start(t);
    const { stdout } = await run(server, server.key, "from an example");
    const [accepted, inFeed, token, ...rest] = stdout.split("\n");
    assert.match(accepted, /^accepted  \d+$/);
    assert.match(inFeed, /^in feed   \d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)  ann: from an example$/);
    assert.match(token, /^token     ey[\w-]+\.[\w-]+\.[\w-]+$/);
    assert.deepEqual(rest, [""]);
  });

  test(`the example backend in ${language} says what was wrong when it is refused`, async (t) => {
    const server = await Home.start(t);
    await assert.rejects(run(server, "not the key", "x"), /Credentials refused: the bearer is neither/);
  });
}
