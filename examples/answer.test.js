// What the examples say when a proxy answers in the place of the server, in HTML, and when nobody has given them a key.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { json } from "./shared/answer.js";
import { client } from "./shared/world.js";

const HTML = `<html><h1>Bad Gateway</h1>${" ".repeat(1000)}</html>`;
const SAYS = /502: <html><h1>Bad Gateway<\/h1>/;

/** The URL of a proxy whose server is away. */
async function proxy(t) {
  const server = createServer((_, response) => response.writeHead(502, { "content-type": "text/html", connection: "close" }).end(HTML));
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

test("an answer is its JSON, null if it is empty, and else an error with its status and its beginning", async () => {
  assert.deepEqual(await json(new Response('{"id": "7"}')), { id: "7" });
  assert.deepEqual(await json(new Response('{"detail": "no"}', { status: 404 })), { detail: "no" });
  assert.equal(await json(new Response(null, { status: 204 })), null);
  await assert.rejects(json(new Response(HTML, { status: 502 })), ({ message }) => SAYS.test(message) && message.length < 300);
  await assert.rejects(json(new Response(HTML)), /^Error: 200: <html>/);
  await assert.rejects(json(new Response(null, { status: 503, statusText: "Service Unavailable" })), /503: Service Unavailable/);
});

/** A server that refuses the first posts for now, each in its way, and takes the next. It tells of each post. */
async function busy(t) {
  const posts = [];
  const refusals = [[503, { "content-type": "application/problem+json", "retry-after": "1" }, '{"title": "Busy", "detail": "later"}'], [502, { "content-type": "text/html" }, HTML]];
  const server = createServer((request, response) => {
    const answer = (status, headers, body) => response.writeHead(status, { connection: "close", ...headers }).end(body);
    if (request.url === "/v1/items") {
      posts.push({ key: request.headers["idempotency-key"], at: performance.now() });
      return answer(...(refusals.shift() ?? [201, {}, '{"id": "7"}']));
    }
    if (request.url.endsWith("/token")) return answer(200, {}, '{"token": "t"}');
    if (request.method === "GET") return answer(200, {}, '{"items": [{"id": "7", "author": "ann", "published_at": 0, "body": {"text": "x"}}]}');
    return answer(204, {});
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, posts };
}

for (const [program, script] of [[process.execPath, "backend.mjs"], ["python3", "backend.py"]]) {
  test(`${script} sends a post that is refused for now again, with the same key, when the server says`, async (t) => {
    const { url, posts } = await busy(t);
    const env = { PATH: process.env.PATH, FEEDGATE_URL: url, FEEDGATE_KEY: "key" };
    const { stdout } = await promisify(execFile)(program, [fileURLToPath(new URL(script, import.meta.url)), "x"], { env });
    assert.match(stdout, /^accepted {2}7$/m);
    assert.equal(posts.length, 3);
    assert.equal(new Set(posts.map(({ key }) => key)).size, 1);
    assert.ok(posts[0].key);
    assert.ok(posts[1].at - posts[0].at > 900, "Retry-After is a second");
  });
}

test("a world that is filled through a proxy says what the proxy said", async (t) => {
  await assert.rejects(client(await proxy(t), "key")("GET", "/v1/stats"), SAYS);
});

for (const [program, script, ...rest] of [
  [process.execPath, "backend.mjs", "hello"],
  [process.execPath, "ranker/ranker.mjs", "--authors", "ann", "--readers", "bob"],
  ["python3", "backend.py", "hello"],
]) {
  test(`${script} says what a proxy said`, async (t) => {
    const env = { PATH: process.env.PATH, FEEDGATE_URL: await proxy(t), FEEDGATE_KEY: "key" };
    const path = fileURLToPath(new URL(script, import.meta.url));
    await assert.rejects(promisify(execFile)(program, [path, ...rest], { env }), ({ stderr }) => SAYS.test(stderr));
  });

  test(`${script} without a key says what to set`, async () => {
    const path = fileURLToPath(new URL(script, import.meta.url));
    const ended = promisify(execFile)(program, [path, ...rest], { env: { PATH: process.env.PATH } });
    await assert.rejects(ended, ({ stderr }) => /set FEEDGATE_KEY to what stands in data\/secrets\/api_key/.test(stderr));
  });
}
