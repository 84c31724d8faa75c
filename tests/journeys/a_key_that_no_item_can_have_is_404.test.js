// Line 14 of the trial: a reader asks for a foreign id that no item can have, such as a NUL. The answer is 404 on
// every home; it is no damage of a store, and it costs no connection to an engine.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";

const KEYS = { "a NUL": "%00", "a NUL inside": "a%00b", "a line break": "a%0Ab", "70,000 letters": "a".repeat(70_000) };

test("a foreign id that no item can have is 404, and no engine is asked for it", async (t) => {
  const server = await Home.start(t);
  const token = await server.token("ann");
  for (const [what, key] of Object.entries(KEYS)) {
    // A head of 16 KiB or more may be refused before its path is read.
    const refused = key.length > 16_000 ? [404, 414, 431] : [404];
    const { status } = await fetch(`${server.url}/v1/items/foreign:${key}`, { headers: { authorization: `Bearer ${token}` } });
    assert.ok(refused.includes(status), `${what}: ${status}\n${server.log()}`);
  }
  assert.equal(await server.isReady(), true);
  assert.doesNotMatch(server.log(), /damaged|ERROR/);
  assert.deepEqual(server.postgres?.lines(/invalid byte sequence/) ?? [], []);
});
