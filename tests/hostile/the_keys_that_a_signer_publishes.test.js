// A signer publishes its keys as a JWKS, and the server fetches them: when it starts, when a token names a key that it
// does not know, and never more often because somebody sends many such tokens. What it has serves on while the signer's
// server is away.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { frame, TEXT, Wire } from "../actors/wire.js";
import { forge } from "./tokens.js";

/** The least time between two fetches, in ms, as in deploy/programs/src/jwks.rs. */
const PAUSE_MS = 5000;

/** A key pair of Ed25519 under this name: what is published of it, and tokens that it signs. */
function signer(kid) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const claims = (user) => ({ sub: user, exp: Math.floor(Date.now() / 1000) + 600 });
  const token = (user) => forge({ header: { alg: "EdDSA", kid }, claims: claims(user), sign: (text) => sign(null, Buffer.from(text), privateKey) });
  return { jwk: { ...publicKey.export({ format: "jwk" }), kid, use: "sig" }, token };
}

/** A server that publishes `keys`. `asked` counts its requests. */
async function publisher(t, keys) {
  const published = { keys, asked: 0 };
  const server = createServer((request, answer) => {
    published.asked += 1;
    answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ keys: published.keys.map(({ jwk }) => jwk) }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  published.url = `http://127.0.0.1:${server.address().port}/jwks.json`;
  published.close = () => (server.closeAllConnections(), server.close());
  t.after(published.close);
  return published;
}

/** What a reader's page is answered with: {status, detail}. */
async function page(server, token) {
  const answer = await fetch(`${server.url}/v1/users/ann/feed`, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, detail: (await answer.json()).detail };
}

test("a signer's keys are fetched, replaced and kept, and a flood of unknown ones does not make it more", async (t) => {
  const [old, next, never] = ["old", "next", "never"].map(signer);
  const published = await publisher(t, [old]);
  const begun = performance.now();
  const server = await Server.start(t, { config: `[gateway]\njwks_url = "${published.url}"\n` });
  await until("the first set is there", async () => (await page(server, old.token("ann"))).status === 200);
  const other = await page(server, old.token("bob"));
  assert.equal(other.status, 403, "whoever signs, a token opens its own user's feed alone");

  published.keys = [next];
  const unknown = await page(server, next.token("ann"));
  assert.deepEqual([unknown.status, /kid is that of no key.*try again/.test(unknown.detail)], [401, true], unknown.detail);
  await until("the new key is there", async () => (await page(server, next.token("ann"))).status === 200);
  assert.equal((await page(server, old.token("ann"))).status, 401, "the old key was withdrawn");

  // A device is told to ask its app for a token and to connect again.
  const device = await Wire.open(t, server);
  device.send(frame(TEXT, JSON.stringify({ id: 1, connect: { token: never.token("ann") } })));
  assert.equal((await device.reply(1)).error.code, 109);
  for (let n = 0; n < 200; n += 1) await page(server, never.token("ann"));
  const most = (performance.now() - begun) / PAUSE_MS + 1;
  assert.ok(published.asked <= most, `${published.asked} requests where there may be ${most}`);

  published.close();
  await page(server, never.token("ann"));
  await until("a fetch has failed", () => server.lines(/WARN.*keys of tokens could not be fetched/).length > 0);
  assert.equal((await page(server, next.token("ann"))).status, 200, "the last good set serves on");
});
