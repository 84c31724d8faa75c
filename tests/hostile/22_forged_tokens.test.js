// Fault 22: forged tokens. Each is refused by HTTP (401) and by WebSocket (3500), before anything is kept of the user
// that it names. And a good token opens nothing that its header points at.

import assert from "node:assert/strict";
import { constants, generateKeyPairSync, sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import { Device } from "../actors/device.js";
import { Server } from "../actors/server.js";
import { forge, hmac } from "./tokens.js";

const HOUR = 3600;

async function start(t, config) {
  const server = await Server.start(t, { config });
  const key = (await readFile(join(server.data, "secrets", "token_key"), "utf8")).trim();
  return { server, key, now: Math.floor(Date.now() / 1000) };
}

/** How the server takes a token: {http, code, error}. */
async function shown(t, server, user, token) {
  const { status } = await server.request("GET", `/v1/users/${user}/feed`, undefined, { token });
  const wire = await Device.open(t, server);
  wire.tell({ id: 1, connect: { token } });
  const answered = wire.until("an answer", () => wire.lines.length > 0).catch(() => undefined);
  await answered;
  const [reply] = wire.lines;
  const code = reply ? null : await wire.closed();
  wire.cut();
  return { http: status, code, error: reply?.error?.code ?? null };
}

/** Every one is refused, and of nobody whom one names is anything kept. */
async function allRefused(t, server, forged) {
  const before = (await server.call("GET", "/v1/stats")).archive;
  for (const [what, make] of Object.entries(forged)) {
    const user = "victim";
    const answer = await shown(t, server, user, make(user));
    assert.deepEqual(answer, { http: 401, code: 3500, error: null }, what);
  }
  const { archive, sessions } = await server.call("GET", "/v1/stats");
  assert.deepEqual(archive, before, "nobody was made");
  assert.equal(sessions.sessions, 0);
}

test("a good token is taken, so that what follows is refused for what is wrong with it", async (t) => {
  const { server, key, now } = await start(t);
  const claims = { sub: "ann", exp: now + HOUR };
  assert.deepEqual(await shown(t, server, "ann", forge({ claims, sign: hmac(key) })), { http: 200, code: null, error: null });
});

test("no algorithm but HS256 is taken, whatever the header says", async (t) => {
  const { server, key, now } = await start(t);
  const claims = (sub) => ({ sub, exp: now + HOUR });
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = rsa.publicKey.export({ type: "spki", format: "pem" });
  const header = (alg, more = {}) => ({ alg, typ: "JWT", ...more });
  const none = Object.fromEntries(
    ["none", "None", "NONE", "nOnE", "", "HS0"].flatMap((alg) => [
      [`alg ${alg} unsigned`, (user) => forge({ header: header(alg), claims: claims(user), sign: () => "" })],
      [`alg ${alg} signed`, (user) => forge({ header: header(alg), claims: claims(user), sign: hmac(key) })],
    ]),
  );
  await allRefused(t, server, {
    ...none,
    "no alg": (user) => forge({ header: { typ: "JWT" }, claims: claims(user), sign: hmac(key) }),
    "alg twice": (user) => forge({ header: '{"alg":"none","alg":"HS256"}', claims: claims(user), sign: hmac(key) }),
    "alg of another case": (user) => forge({ header: header("hs256"), claims: claims(user), sign: hmac(key) }),
    HS384: (user) => forge({ header: header("HS384"), claims: claims(user), sign: hmac(key, "sha384") }),
    HS512: (user) => forge({ header: header("HS512"), claims: claims(user), sign: hmac(key, "sha512") }),
    "RS256 by a key of one's own": (user) =>
      forge({
        header: header("RS256", { jwk: rsa.publicKey.export({ format: "jwk" }) }),
        claims: claims(user),
        sign: (text) => sign("sha256", Buffer.from(text), rsa.privateKey),
      }),
    "PS256 by a key of one's own": (user) =>
      forge({
        header: header("PS256"),
        claims: claims(user),
        sign: (text) => sign("sha256", Buffer.from(text), { key: rsa.privateKey, padding: constants.RSA_PKCS1_PSS_PADDING }),
      }),
    "HS256 with a public key as its secret": (user) => forge({ claims: claims(user), sign: hmac(pem) }),
    "RS256 with an HS256 signature": (user) => forge({ header: header("RS256"), claims: claims(user), sign: hmac(key) }),
    "ES256 by a key of one's own": (user) =>
      forge({
        header: header("ES256", { jwk: ec.publicKey.export({ format: "jwk" }) }),
        claims: claims(user),
        sign: (text) => sign("sha256", Buffer.from(text), { key: ec.privateKey, dsaEncoding: "ieee-p1363" }),
      }),
    "ES256 of zeros": (user) => forge({ header: header("ES256"), claims: claims(user), sign: () => Buffer.alloc(64) }),
    "EdDSA of zeros": (user) => forge({ header: header("EdDSA"), claims: claims(user), sign: () => Buffer.alloc(64) }),
  });
});

test("no key is taken from where a header points, and nothing there is fetched", async (t) => {
  const { server, key, now } = await start(t);
  const claims = (sub) => ({ sub, exp: now + HOUR });
  const fetched = [];
  const trap = createServer((request, response) => {
    fetched.push(request.url);
    response.end(JSON.stringify({ keys: [{ kty: "oct", kid: "1", alg: "HS256", k: Buffer.from("mine").toString("base64url") }] }));
  });
  await new Promise((resolve) => trap.listen(0, "127.0.0.1", resolve));
  t.after(() => trap.close());
  const url = `http://127.0.0.1:${trap.address().port}/keys`;
  const oct = { kty: "oct", k: Buffer.from("mine").toString("base64url"), alg: "HS256" };
  const points = {
    "kid of an empty file": [{ kid: "../../../../../../dev/null" }, ""],
    "kid of a file that is known": [{ kid: "/proc/sys/kernel/ostype" }, "Linux\n"],
    "kid of another secret": [{ kid: join(server.data, "secrets", "api_key") }, server.key],
    "kid in SQL": [{ kid: "x' UNION SELECT 'mine' -- " }, "mine"],
    "kid of a command": [{ kid: "|echo mine" }, "mine"],
    jku: [{ kid: "1", jku: url }, "mine"],
    x5u: [{ x5u: url }, "mine"],
    jwk: [{ jwk: oct }, "mine"],
    "an empty key": [{}, ""],
    "the API key": [{}, server.key],
    "the key with a line feed": [{}, `${key}\n`],
    "the key as bytes": [{}, Buffer.from(key, "base64url")],
  };
  await allRefused(
    t,
    server,
    Object.fromEntries(
      Object.entries(points).map(([what, [more, secret]]) => [
        what,
        (user) => forge({ header: { alg: "HS256", ...more }, claims: claims(user), sign: hmac(secret) }),
      ]),
    ),
  );
  for (const more of [{ kid: "1", jku: url }, { x5u: url }]) {
    await shown(t, server, "ann", forge({ header: { alg: "HS256", ...more }, claims: claims("ann"), sign: hmac(key) }));
  }
  assert.deepEqual(fetched, []);
});

test("claims that are missing, twice there or of another type are refused, though the signature is right", async (t) => {
  const { server, key, now } = await start(t);
  const exp = now + HOUR;
  const good = (claims) => forge({ claims, sign: hmac(key) });
  const claims = {
    "no exp": (sub) => ({ sub }),
    "exp as text": (sub) => ({ sub, exp: String(exp) }),
    "exp null": (sub) => ({ sub, exp: null }),
    "exp true": (sub) => ({ sub, exp: true }),
    "exp in a list": (sub) => ({ sub, exp: [exp] }),
    "exp that no number holds": (sub) => `{"sub":"${sub}","exp":1e400}`,
    "exp twice": (sub) => `{"sub":"${sub}","exp":1,"exp":${exp}}`,
    "nbf as text": (sub) => ({ sub, exp, nbf: "1" }),
    "nbf in an hour": (sub) => ({ sub, exp, nbf: exp }),
    "no sub": () => ({ exp }),
    "sub null": () => ({ sub: null, exp }),
    "sub as a number": () => ({ sub: 7, exp }),
    "sub in a list": (sub) => ({ sub: [sub], exp }),
    "sub twice": (sub) => `{"sub":"mallory","sub":"${sub}","exp":${exp}}`,
    "sub twice, once escaped": (sub) => `{"sub":"mallory","\\u0073ub":"${sub}","exp":${exp}}`,
    "sub empty": () => ({ sub: "", exp }),
    "sub too long": () => ({ sub: "a".repeat(65), exp }),
    "sub of a path": (sub) => ({ sub: `../${sub}`, exp }),
    "sub with a zero": (sub) => ({ sub: `${sub}\0`, exp }),
    "sub of two lines": (sub) => ({ sub: `${sub}\n`, exp }),
    "device_id as a number": (sub) => ({ sub, exp, device_id: 7 }),
    "device_id that is none": (sub) => ({ sub, exp, device_id: "my phone" }),
    "device_id twice": (sub) => `{"sub":"${sub}","exp":${exp},"device_id":"a","device_id":"b"}`,
    "a list of claims": (sub) => [{ sub, exp }],
    "claims that are text": () => '"victim"',
    "claims that are no JSON": () => "{",
    "nothing": () => "",
  };
  await allRefused(t, server, Object.fromEntries(Object.entries(claims).map(([what, of]) => [what, (sub) => good(of(sub))])));
});

test("a token that was changed, cut or written otherwise is refused", async (t) => {
  const { server, now } = await start(t);
  const token = await server.token("victim", { ttl: HOUR });
  const [header, claims, signature] = token.split(".");
  const other = Buffer.from(JSON.stringify({ sub: "victim", exp: now + 2 * HOUR })).toString("base64url");
  // The last character of 32 bytes in base64url carries four bits; two more may be flipped and mean nothing.
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const loose = signature.slice(0, -1) + alphabet[alphabet.indexOf(signature.at(-1)) ^ 1];
  const forged = {
    "other claims": `${header}.${other}.${signature}`,
    "no signature": `${header}.${claims}.`,
    "two parts": `${header}.${claims}`,
    "four parts": `${token}.${signature}`,
    "five parts": `${token}.x.y`,
    "a signature cut": token.slice(0, -1),
    "a signature with loose bits": `${header}.${claims}.${loose}`,
    "a signature with padding": `${token}=`,
    "a signature of zeros": `${header}.${claims}.${"A".repeat(43)}`,
    "claims with padding": `${header}.${claims}=.${signature}`,
    "parts in another order": `${claims}.${header}.${signature}`,
    "the API key": `${server.key}x`,
    "dots alone": "..",
    "a long text": "x".repeat(3000),
    "deep claims": forge({ claims: "[".repeat(1000), sign: hmac("x") }),
  };
  await allRefused(t, server, Object.fromEntries(Object.entries(forged).map(([what, text]) => [what, () => text])));
  // A socket of readers knows no API key.
  const wire = await Device.open(t, server);
  wire.tell({ id: 1, connect: { token: server.key } });
  assert.equal(await wire.closed(), 3500);
});

test("a token that has expired is told so", async (t) => {
  const { server, key, now } = await start(t);
  for (const exp of [now - 1, -now, 0.5]) {
    const expired = forge({ claims: { sub: "victim", exp }, sign: hmac(key) });
    assert.deepEqual(await shown(t, server, "victim", expired), { http: 401, code: null, error: 109 }, exp);
  }
});

test("one address has so many forged tokens checked, a tenth of what it may ask with good ones", async (t) => {
  const { server, now } = await start(t, "[gateway]\ntrusted_proxies = []\nreads_per_address_per_sec = 100\n");
  const token = forge({ claims: { sub: "victim", exp: now + HOUR }, sign: hmac("another key") });
  const statuses = [];
  const begun = performance.now();
  for (let n = 0; n < 200; n += 1) statuses.push((await server.request("GET", "/v1/users/victim/feed", undefined, { token })).status);
  const secs = (performance.now() - begun) / 1000;
  const count = (wanted) => statuses.filter((status) => status === wanted).length;
  assert.equal(count(401) + count(429), 200, statuses.join());
  assert.ok(count(401) >= 20 && count(401) <= 20 + 10 * secs + 1, `${count(401)} were checked in ${secs} s`);
});

test("where an audience is set, a token for another one is refused", async (t) => {
  const { server, key, now } = await start(t, '[gateway]\ntoken_audience = "feed"\n');
  const token = (user, aud) => forge({ claims: { sub: user, exp: now + HOUR, aud }, sign: hmac(key) });
  const wrong = [undefined, "", "shop", "feed2", "FEED", ["shop"], [], [["feed"]], { feed: true }, null];
  await allRefused(t, server, Object.fromEntries(wrong.map((aud) => [`aud ${JSON.stringify(aud)}`, (user) => token(user, aud)])));
  const taken = { http: 200, code: null, error: null };
  for (const aud of ["feed", ["shop", "feed"]]) assert.deepEqual(await shown(t, server, "ann", token("ann", aud)), taken);
  assert.deepEqual(await shown(t, server, "ann", await server.token("ann")), taken, "its own tokens are for it");
});
