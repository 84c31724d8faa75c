// JSON that is well-formed and yet breaks the parsers of phones is refused wherever a body enters. A phone whose parser
// fails on an item would come back to the same place for ever.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { TOOLS } from "../actors/process.js";
import { Server } from "../actors/server.js";

const nested = (depth) => "[".repeat(depth) + "]".repeat(depth);

const POISON = [
  ["20,000 levels", nested(20_000), /nests at most 128/],
  ["129 levels", nested(129), /nests at most 128/],
  ["half of a surrogate pair", '{"text":"\\ud800"}', /half of a surrogate pair/],
  ["the other half", '{"\\udc00":1}', /half of a surrogate pair/],
  ["a number beyond a double", "[1e400]", /range of a double/],
];

const doors = (body) => [
  ["publish", "POST", "/v1/items", `{"author":"ann","body":${body}}`],
  ["batch", "POST", "/v1/items/batch", `{"ops":[{"author":"ann","body":${body}}]}`],
  ["edit", "PATCH", "/v1/items/1", `{"body":${body}}`],
  ["import", "POST", "/v1/import", `{"type":"item","id":"7","author":"ann","published_at":1,"body":${body}}`],
];

/** The problem that the server answers with, in place of a result or of a line where there are several. */
function problem(text) {
  const answer = JSON.parse(text.split("\n")[0]);
  return answer.results?.[0] ?? answer.refused ?? answer;
}

/** Runs the command line tool; what it says when it fails. */
async function refusedByTool(server, body) {
  const env = { FEEDGATE_URL: server.url, FEEDGATE_KEY: server.key };
  const tool = spawn(join(TOOLS, "bin", "feedgate"), ["publish", "--author", "ann", "-"], { env, stdio: ["pipe", "ignore", "pipe"] });
  let said = "";
  tool.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  tool.stdin.on("error", () => {}).end(body);
  const [code] = await new Promise((resolve) => tool.once("close", (...ended) => resolve(ended)));
  assert.notEqual(code, 0, "the tool accepted it");
  return said;
}

test("a body that breaks parsers is refused at every door, and the phone's log has none of it", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  await server.call("POST", "/v1/items", { id: "1", author: "ann", body: { text: "fine" } });
  await server.drained();
  for (const [what, body, why] of POISON) {
    for (const [door, method, path, request] of doors(body)) {
      const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" };
      const answer = await fetch(server.url + path, { method, headers, body: request });
      const { status, detail, pointer } = problem(await answer.text());
      assert.equal(status, 422, `${door} of ${what}: ${detail}`);
      assert.match(detail, why, `${door} of ${what}`);
      assert.match(pointer, /body$/, `${door} of ${what}`);
    }
    assert.match(await refusedByTool(server, body), why, `the tool's publish of ${what}`);
  }
  const whole = await server.publish("ann", JSON.parse(nested(128)));
  await server.drained();
  const seen = (await server.changes("bob")).map(({ op, item }) => [op, item.id, item.version]);
  assert.deepEqual(seen, [["add", "1", 1], ["add", whole.id, 1]]);
});
