// The reducers of examples/ in other languages than JavaScript take the steps of feed-vectors.json, each in a test of its
// own language.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";

import { TOOLS } from "../actors/process.js";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

const TESTS = {
  python: { command: [join(TOOLS, "python", "bin", "python"), "feed_test.py"], folder: "." },
  go: { command: [join(TOOLS, "phones", "app-go-test")], folder: "go" },
  java: { command: ["java", "-cp", ["app.jar", "dependency/*"].map((name) => join(TOOLS, "phones", "app-java", name)).join(":"), "FeedTest", "feed-vectors.json"], folder: "." },
  rust: { command: ["cargo", "test", "--locked", "--target-dir", join(TOOLS, "phones", "rust")], folder: "rust" },
};

for (const [language, { command, folder }] of Object.entries(TESTS)) {
  const [program, ...options] = command;
  test(`the reducer in ${language} takes every step of the vectors`, () => promisify(execFile)(program, options, { cwd: join(EXAMPLES, folder) }));
}
