import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Home } from "../actors/home.js";
import { TOOLS } from "../actors/process.js";
import { until } from "../actors/until.js";

const example = (name) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
const python = join(TOOLS, "python", "bin", "python");

for (const [language, program, script] of [
  ["node", process.execPath, example("backend.mjs")],
  ["python", python, example("backend.py")],
]) {
  const run = (server, key, text) =>
    promisify(execFile)(program, [script, text], { env: { FEEDGATE_URL: server.url, FEEDGATE_KEY: key } });

  test(`the example backend in ${language} publishes, and its follower's feed has the post`, async (t) => {
    const server = await Home.start(t);
    await run(server, server.key, "from an example");
    const texts = async () => (await server.call("GET", "/v1/users/bob/feed")).items.map((item) => item.body.text);
    await until("the post is in the feed", async () => (await texts())[0] === "from an example", { seen: texts });
  });

  test(`the example backend in ${language} says what was wrong when it is refused`, async (t) => {
    const server = await Home.start(t);
    await assert.rejects(run(server, "not the key", "x"), /Credentials refused: the bearer is neither/);
  });
}
