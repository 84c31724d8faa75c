// Security: no token, no usable part of a token and no API key is in a line of the log or in a file of the store,
// whatever a device or a backend sends, and however much is logged.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { frame, TEXT, Wire } from "../actors/wire.js";

/** Every file below a directory: [[path, bytes]]. */
async function files(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return Promise.all(paths.map(async (path) => [path, await readFile(path)]));
}

test("no credential is in the log at its most talkative, nor in the store", async (t) => {
  const server = await Server.start(t, { config: 'log = "trace"\n[gateway]\nrefresh_grace_secs = 1\n[search]\nfields = ["text"]\n[feeds.picks]\nranked = true\n' });
  await server.follow("ann", "bob");
  const good = await server.token("ann", { device: "phone" });
  const { token: short } = await server.call("POST", "/v1/users/ann/token", { ttl: 1 });
  const forged = `${good.slice(0, -4)}XXXX`;
  const wrongKey = `${server.key.slice(0, -4)}XXXX`;

  // By HTTP: in their place, in the wrong place, twice, cut.
  for (const token of [good, forged, wrongKey, short, "x"]) {
    await server.request("GET", "/v1/users/ann/feed", undefined, { token });
    await server.request("GET", `/v1/users/ann/feed?token=${token}`, undefined, { token });
    await server.request("GET", `/v1/users/${token.slice(0, 60)}/feed`, undefined, { token });
    await server.request("GET", `/v1/search/items?q=${token}&cursor=${token}`, undefined, { token: server.key });
    await server.request("GET", `/v1/search/users?q=${token.slice(0, 60)}`, undefined, { token: server.key });
    await server.request("GET", `/v1/users/${token.slice(0, 60)}/sent?cursor=${token}`, undefined, { token });
    await server.request("GET", `/v1/users/bob/outbox?viewer=${token.slice(0, 60)}`, undefined, { token });
    await server.request("GET", `/v1/items/7/reposts?cursor=${token}`, undefined, { token });
    await server.request("GET", `/v1/items/foreign:${token}/versions`, undefined, { token: server.key });
    await server.request("POST", "/v1/items", { author: "bob", body: 1, token }, { token: server.key });
    await server.request("PUT", `/v1/users/ann/feeds/${token.slice(0, 60)}/ranking`, [{ id: token, rank: 1 }], { token: server.key });
    await server.request("PUT", "/v1/users/ann/feeds/picks/ranking", [{ id: token, rank: 1 }], { token: server.key });
    await server.request("PUT", `/v1/users/ann/pins/${token.slice(0, 60)}`, undefined, { token: server.key });
    await server.request("PUT", `/v1/users/${token.slice(0, 60)}/pins/foreign:${token}`, undefined, { token: server.key });
    await fetch(`${server.url}/connection/websocket?token=${token}&access_token=${server.key}`).then((answer) => answer.text());
  }
  // Tokens by WebSocket: in connect, in refresh, and in fields where no token belongs.
  for (const token of [good, forged, short]) {
    const wire = await Wire.open(t, server);
    wire.send(frame(TEXT, JSON.stringify({ id: 1, connect: { token, data: { device_id: "phone" }, name: token } })));
    wire.send(frame(TEXT, JSON.stringify({ id: 2, refresh: { token: forged } })));
    await wire.closed();
  }
  const wire = await Wire.open(t, server, { token: good });
  await wire.ask("refresh", { token: await server.token("eve") });
  await wire.ask("subscribe", { channel: good });
  await wire.ask("rpc", { method: good, data: { token: good } });
  wire.send(frame(TEXT, `{"id":7,"connect":{"token":"${good}"`));
  assert.equal(await wire.closed(), 3501);
  await Wire.open(t, server, { headers: { Cookie: `token=${good}`, Authorization: `Bearer ${good}` } });
  await server.publish("bob", { text: "so that something is stored" });
  await server.drained();
  await server.stop();

  const log = server.lines(/./);
  assert.ok(log.length > 20, "it was talkative");
  const signature = (token) => token.split(".").at(-1);
  const secrets = { good: signature(good), short: signature(short), forged: signature(forged), key: server.key, wrongKey };
  const tokenKey = (await readFile(join(server.data, "secrets", "token_key"), "utf8")).trim();
  for (const [what, secret] of Object.entries({ ...secrets, tokenKey })) {
    const line = log.find((line) => line.includes(secret));
    assert.equal(line, undefined, `${what} is logged`);
  }
  for (const [path, bytes] of await files(server.data)) {
    if (path.startsWith(join(server.data, "secrets"))) continue;
    for (const [what, secret] of Object.entries({ ...secrets, tokenKey })) assert.ok(!bytes.includes(secret), `${what} is in ${path}`);
  }
});

test("no answer of the API is a page, so that nothing that somebody published runs in a browser", async (t) => {
  const server = await Server.start(t);
  const script = "<script>alert(1)</script>";
  const item = await server.publish("bob", { text: script }, { foreign_id: script.slice(0, 20) });
  await server.follow("ann", "bob");
  const { paths } = await server.call("GET", "/openapi.json");
  const fill = { user: "ann", author: "bob", other: "bob", id: item.id, device: "d", name: script, kind: script, feed: script };
  const urls = Object.keys(paths).map((path) => path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(fill[name])));
  for (const url of [...urls, `/${script}`, `/v1/items?ids=${script}`, "/connection/websocket"]) {
    for (const token of [server.key, script]) {
      const answer = await fetch(server.url + url, { headers: { authorization: `Bearer ${token}`, accept: "text/html" } });
      const type = answer.headers.get("content-type") ?? "none";
      // A stream of events has no end, and no browser shows it or a backup as a page.
      if (type.startsWith("text/event-stream")) await answer.body.cancel();
      else await answer.arrayBuffer();
      assert.match(type, /^(application\/(problem\+)?(json|x-ndjson|openmetrics-text)|application\/octet-stream$|text\/event-stream|none$)/, url);
    }
  }
});
