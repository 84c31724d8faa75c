// What a browser asks the server before it lets a page read an answer of another origin, and what the server answers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "../actors/server.js";

const PAGE = "https://app.example";

/** The browser's question, and then the page's request. */
async function read(server, path, { origin, token }) {
  const url = server.url + path;
  const question = { origin, "access-control-request-method": "GET", "access-control-request-headers": "authorization" };
  const permission = await fetch(url, { method: "OPTIONS", headers: question });
  const answer = await fetch(url, { headers: { origin, authorization: `Bearer ${token}` } });
  await answer.text();
  return { permission, answer, allowed: answer.headers.get("access-control-allow-origin") };
}

test("a page of an allowed origin reads what its reader's token opens, and no other page does", async (t) => {
  const server = await Server.start(t, { config: `[gateway]\nallowed_origins = ["${PAGE}"]\n` });
  await server.publish("bob", { text: "hello" });
  const token = await server.token("bob");
  for (const path of ["/v1/users/bob/feed", "/v1/users/bob/outbox", "/v1/users/bob/sessions", "/v1/items?ids=1"]) {
    const { permission, answer, allowed } = await read(server, path, { origin: PAGE, token });
    assert.equal(permission.status, 204, path);
    assert.equal(permission.headers.get("access-control-allow-origin"), PAGE);
    assert.equal(permission.headers.get("access-control-allow-methods"), "GET");
    assert.match(permission.headers.get("access-control-allow-headers"), /^authorization$/i);
    assert.equal(answer.status, 200);
    assert.equal(allowed, PAGE);
    assert.match(answer.headers.get("vary"), /origin/i);
    const other = await read(server, path, { origin: "https://evil.example", token });
    assert.deepEqual([other.permission.status, other.allowed], [405, null]);
  }
  const refused = await read(server, "/v1/users/bob/feed", { origin: PAGE, token: "forged" });
  assert.deepEqual([refused.answer.status, refused.allowed], [401, PAGE], "the page sees why it was refused");
  for (const path of ["/v1/export", "/v1/stats", "/v1/users/bob/followers", "/v1/users/bob/token"]) {
    const { permission, allowed } = await read(server, path, { origin: PAGE, token: server.key });
    assert.deepEqual([permission.status, allowed], [405, null], `${path} takes the API key, which no page has`);
  }
});

test("while no origin is named, every page may read", async (t) => {
  const server = await Server.start(t);
  const { permission, allowed } = await read(server, "/v1/users/bob/feed", { origin: PAGE, token: await server.token("bob") });
  assert.deepEqual([permission.status, allowed], [204, PAGE]);
});
