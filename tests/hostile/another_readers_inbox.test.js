// Security: user A asks for user B's inbox, on every route of the served document and by every command of the socket,
// also with every cursor and position from B's own answers. A is refused, and learns nothing of B.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { TEXT, Wire } from "../actors/wire.js";

const METHODS = ["get", "put", "post", "patch", "delete"];
const SECRET = "only bob may read this";

/** Bob follows an author that mallory does not, and has items, a device and a position. */
async function start(t) {
  const server = await Server.start(t, { config: '[gateway]\ncommands_per_sec = 1000\nreads_per_user_per_sec = 1000\nreads_per_address_per_sec = 1000\n[feeds.likes]\nkinds = ["like"]\n[feeds.picks]\nranked = true\n[search]\nfields = ["text"]\n' });
  await server.follow("bob", "ann");
  await server.page("bob");
  const posts = [];
  for (let n = 0; n < 5; n += 1) posts.push(await server.publish("ann", { text: `${SECRET} ${n}` }));
  await server.call("PUT", `/v1/users/ann/pins/${posts[2].id}`);
  const direct = await server.publish("ann", { text: SECRET }, { audience: { users: ["bob"] }, foreign_id: "secret" });
  await server.call("PUT", "/v1/users/bob/muted/eve");
  await server.call("PUT", "/v1/users/bob/lists/close/eve");
  await server.call("PUT", "/v1/users/bob/feeds/picks/ranking", [{ id: direct.id, rank: 1 }]);
  await server.drained();
  await Wire.open(t, server, { token: await server.token("bob", { device: "bobs-phone" }) });
  const document = await server.call("GET", "/openapi.json");
  const { next, position } = await server.page("bob", { limit: 2 });
  const token = await server.token("mallory", { device: "bobs-phone" });
  return { server, document, token, item: direct.id, next, position };
}

/** Everything that is kept of bob and ann. */
async function everything(server) {
  const paths = ["users/bob/feed", "users/bob/feeds/picks/ranking", "users/bob/feed?name=picks", "users/bob/following", "users/bob/requests", "users/bob/muted", "users/bob/lists/close", "users/bob/sessions", "users/ann/outbox", "users/ann/followers", "authors/ann"];
  return Promise.all(paths.map((path) => server.call("GET", `/v1/${path}`)));
}

test("every route that is in the document refuses another reader's inbox, and changes nothing", async (t) => {
  const { server, document, token, item, next, position } = await start(t);
  const before = await everything(server);
  const fill = { user: "bob", author: "ann", other: "eve", id: item, device: "bobs-phone", name: "forbidden", kind: "like", comment: "5", list: "close", member: "eve", feed: "picks", reader: "eve" };
  const queries = ["", "?limit=100", `?${new URLSearchParams({ cursor: next })}`, `?${new URLSearchParams({ ...position, limit: 10 })}`];
  const bodies = ["{}", JSON.stringify({ author: "ann", body: 1 }), JSON.stringify({ ops: [{ op: "follow", user: "mallory", author: "ann" }] })];
  let asked = 0;
  for (const [template, operations] of Object.entries(document.paths)) {
    // It names nobody: the token alone says whose feed it is, and the answer does not end.
    if (template === "/connection/uni_sse") continue;
    const path = template.replace(/\{(\w+)\}/g, (_, name) => fill[name] ?? assert.fail(`what stands for ${name} in ${template}?`));
    for (const method of METHODS.filter((method) => method in operations)) {
      const open = operations[method].security?.length === 0;
      for (const query of method === "get" ? queries : [""]) {
        for (const body of method === "get" ? [undefined] : bodies) {
          const answer = await fetch(server.url + path + query, {
            method: method.toUpperCase(),
            headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
            body,
          });
          const text = await answer.text();
          const what = `${method} ${path}${query}: ${answer.status} ${text.slice(0, 200)}`;
          // What needs no token says nothing of anybody; of an item, only that there is none for mallory.
          if (!open) assert.ok([400, 403, 404].includes(answer.status), what);
          // What is said of a user is for all readers; of bob nothing is.
          const ofAll = template === "/v1/users/{user}" && method === "get";
          if (template.includes("{user}") && query === "") assert.equal(answer.status, ofAll ? 404 : 403, what);
          assert.ok(!text.includes(SECRET), what);
          asked += 1;
        }
      }
    }
  }
  assert.ok(asked > 70, `the document has the routes: ${asked}`);
  const several = await server.request("GET", `/v1/items?ids=${item}`, undefined, { token });
  assert.deepEqual([several.body.items, several.body.missing], [[], [item]]);
  const search = (path) => server.request("GET", `/v1/search/items?${new URLSearchParams({ q: SECRET })}${path}`, undefined, { token });
  for (const path of ["", "&author=ann", "&viewer=mallory"]) assert.deepEqual((await search(path)).body.items, [], path);
  assert.equal((await search("&viewer=bob")).status, 403);
  const profile = (viewer) => server.request("GET", `/v1/users/ann/outbox?viewer=${viewer}`, undefined, { token });
  assert.deepEqual((await profile("mallory")).body, { items: [], next: null });
  assert.equal((await profile("bob")).status, 403);
  assert.equal((await server.request("GET", "/v1/items/foreign:secret", undefined, { token })).status, 404);
  assert.deepEqual(await everything(server), before);
});

test("paths written otherwise lead to nobody else's inbox", async (t) => {
  const { server, token } = await start(t);
  const paths = [
    "/v1/users/bob%2Ffeed",
    "/v1/users/mallory/../bob/feed",
    "/v1/users/mallory/%2e%2e/bob/feed",
    "/v1/users/mallory%2F..%2Fbob/feed",
    "/v1/users//bob/feed",
    "/v1/users/./bob/feed",
    "/v1/users/b%6fb/feed",
    "/v1/users/bob%00/feed",
    "/v1/users/bob%20/feed",
    "/v1/users/BOB/feed",
    "/v1/users/bob;mallory/feed",
    "/v1/users/mallory,bob/feed",
    "/v1/users/bob/feed/",
    "//v1/users/bob/feed",
    "/V1/users/bob/feed",
    "/v1/users/mallory/feed?user=bob",
    "/v1/users/mallory/feed?name=feed:bob",
    "/v1/users/mallory/feed?name=bob",
  ];
  for (const path of paths) {
    // The request is written by hand, because fetch would tidy the path up.
    const wire = await Wire.open(t, server, { upgraded: false });
    wire.send(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`);
    const chunks = [];
    wire.socket.on("data", (bytes) => chunks.push(bytes));
    await wire.closed();
    const text = Buffer.concat(chunks).toString();
    assert.match(text, /^HTTP\/1\.1 (400|403|404) /, `${path}: ${text.slice(0, 60)}`);
    assert.ok(!text.includes(SECRET), path);
  }
});

test("no command of the socket reaches another reader's inbox", async (t) => {
  const { server, token, next, position } = await start(t);
  const channels = ["bob", "feed:bob", "#bob", "feed#bob", "$feed:bob", "user:bob", "feed/bob", "feed\u0000bob", "", "*", "likes:bob", "@bob", "personal:bob"];
  const wire = await Wire.open(t, server, { token });
  for (const channel of channels) {
    for (const [verb, params] of [
      ["subscribe", { channel, recover: true, ...position, data: { deliver: "items" } }],
      ["history", { channel, limit: 100, since: { offset: 0, epoch: position.epoch } }],
      ["presence", { channel }],
      ["presence_stats", { channel }],
      ["unsubscribe", { channel }],
      ["rpc", { method: "page", data: { channel, limit: 100 } }],
      ["rpc", { method: "ack", data: { channel, ...position } }],
      ["publish", { channel, data: { text: "as bob" } }],
    ]) {
      const reply = await wire.ask(verb, params);
      assert.ok([102, 103, 107].includes(reply.error?.code), `${verb} of ${JSON.stringify(channel)}: ${JSON.stringify(reply)}`);
    }
  }
  // The channel that there is means the caller's own inbox, whatever else is said.
  const own = [
    ["rpc", { method: "page", data: { user: "bob", cursor: next, limit: 100 } }],
    ["history", { channel: "feed", user: "bob", limit: 100 }],
    ["subscribe", { channel: "feed", user: "bob", token, recover: true, ...position, data: { deliver: "items", user: "bob" } }],
    ["presence", { channel: "feed", user: "bob" }],
  ];
  for (const [verb, params] of own) {
    const text = JSON.stringify(await wire.ask(verb, params));
    assert.ok(!text.includes(SECRET) && !text.includes('"bob"'), `${verb}: ${text}`);
  }
  await server.publish("ann", { text: SECRET });
  await server.drained();
  await wire.ask("ping");
  assert.deepEqual(wire.lines, [], "nothing is pushed either");
  assert.ok(!wire.frames.some(({ opcode, payload }) => opcode !== TEXT || payload.includes(SECRET)));
});

test("a token of another device ends only its own user's session of that name", async (t) => {
  const { server, token } = await start(t);
  await Wire.open(t, server, { token }); // mallory's device is called like bob's
  const { sessions } = await server.call("GET", "/v1/users/bob/sessions");
  assert.equal(sessions.filter(({ device }) => device === "bobs-phone").length, 1);
  assert.equal((await server.request("DELETE", "/v1/users/bob/sessions/bobs-phone", undefined, { token })).status, 403);
});
