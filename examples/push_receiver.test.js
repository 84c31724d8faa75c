// The receiver of push_receiver.mjs takes what is signed and nothing else, tells each notification once, and builds the
// requests that FCM and APNs take.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createPublicKey, createHmac, generateKeyPairSync, verify } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { apnsRequest, apnsToken, apnsTokens, fcmRequest, isGoneForApns, isGoneForFcm, isSigned, receiver, take } from "./push_receiver.mjs";

const KEY = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

const notification = (id = "msg_1", unread = 3) => ({
  id,
  user: "bob",
  devices: [{ device: "phone", platform: "fcm", push_token: "t1" }],
  feed: "feed",
  unread,
  newest: { id: "7", author: "ann", body: { text: "hello" }, published_at: 1, rank: 1, version: 1 },
});

const now = () => Math.floor(Date.now() / 1000);

function signed(body, { key = KEY, at = now() } = {}) {
  const secret = Buffer.from(key.slice(6), "base64");
  const signature = createHmac("sha256", secret).update(`id.${at}.${body}`).digest("base64");
  return { "webhook-id": "id", "webhook-timestamp": `${at}`, "webhook-signature": `v1,${signature}` };
}

test("the example of the specification of Standard Webhooks is signed", () => {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const keys = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"];
  assert.ok(isSigned(headers, '{"test": 2432232314}', keys, 1614265330));
  assert.ok(!isSigned(headers, '{"test": 2432232315}', keys, 1614265330));
  assert.ok(!isSigned(headers, '{"test": 2432232314}', keys, 1614265330 + 301), "too old");
});

test("a call that is not signed by the key is refused, and one that is, is taken", async (t) => {
  const told = [];
  const server = receiver({ keys: [KEY], tell: { fcm: (sent, device) => (told.push(device.push_token), device.push_token === "t1") } });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const body = JSON.stringify({ notifications: [notification()] });
  const call = async (headers) => {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { method: "POST", headers: { ...headers, connection: "close" }, body });
    return [answer.status, await answer.json()];
  };
  const other = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
  for (const headers of [{}, signed("other"), signed(body, { key: other }), signed(body, { at: now() - 400 })]) {
    assert.equal((await call(headers))[0], 401);
  }
  assert.deepEqual(told, []);
  assert.deepEqual(await call(signed(body)), [200, { gone: [{ user: "bob", device: "phone" }] }]);
  assert.deepEqual(await call(signed(body)), [200, { gone: [{ user: "bob", device: "phone" }] }], "the answer may have been lost");
  assert.deepEqual(told, ["t1"], "a repeated call tells nobody twice");
});

test("what could not be told is told by the next call", async () => {
  const told = new Map();
  const fails = { fcm: () => Promise.reject(new Error("FCM is down")) };
  await assert.rejects(take({ notifications: [notification()] }, told, fails), /FCM is down/);
  assert.deepEqual(await take({ notifications: [notification()] }, told, { fcm: () => true }), { gone: [{ user: "bob", device: "phone" }] });
});

test("a device that is gone and comes again by another token is told with the same id", async () => {
  const [told, asked] = [new Map(), []];
  const tell = { fcm: async (sent, { push_token }) => (asked.push(push_token), push_token === "t1") };
  const [first, second] = ["t1", "t2"].map((push_token) => {
    return { ...notification(), devices: [{ device: "phone", platform: "fcm", push_token }] };
  });
  const gone = { gone: [{ user: "bob", device: "phone" }] };
  assert.deepEqual(await take({ notifications: [first] }, told, tell), gone);
  assert.deepEqual(await take({ notifications: [second] }, told, tell), { gone: [] });
  assert.deepEqual(asked, ["t1", "t2"]);
});

test("a call that is repeated tells only the devices that were not told", async () => {
  const [told, asked] = [new Map(), []];
  const devices = ["phone", "tablet"].map((device) => ({ device, platform: "fcm", push_token: device }));
  const call = { notifications: [{ ...notification(), devices }] };
  let fails = true;
  const tell = { fcm: async (_, { device }) => {
    asked.push(device);
    if (device === "tablet" && fails) throw new Error("FCM is down");
  } };
  await assert.rejects(take(call, told, tell), /FCM is down/);
  fails = false;
  await take(call, told, tell);
  assert.deepEqual(asked, ["phone", "tablet", "tablet"]);
});

test("a call that comes again while the first is under way tells nobody twice, and waits for what comes of it", async () => {
  const [told, asked] = [new Map(), []];
  let answer;
  const tell = { fcm: (_, { device }) => (asked.push(device), new Promise((resolve) => (answer = resolve))) };
  const calls = [1, 2].map(() => take({ notifications: [notification()] }, told, tell));
  await new Promise(setImmediate);
  answer(true);
  const gone = [{ user: "bob", device: "phone" }];
  assert.deepEqual(await Promise.all(calls), [{ gone }, { gone }]);
  assert.deepEqual(asked, ["phone"]);
});

test("a device that cannot be told holds up nobody behind it in the call", async () => {
  const [told, asked] = [new Map(), []];
  const call = { notifications: ["msg_1", "msg_2"].map((id) => notification(id)) };
  const tell = { fcm: async ({ id }) => {
    asked.push(id);
    if (id === "msg_1") throw new Error("FCM does not answer for this one");
    return true;
  } };
  await assert.rejects(take(call, told, tell), /does not answer for this one/);
  await assert.rejects(take(call, told, tell), /does not answer for this one/);
  assert.deepEqual(asked, ["msg_1", "msg_2", "msg_1"], "the second is told once, by the first call");
});

test("a device whose token FCM or APNs will never take is gone, and only what may pass is tried again", (t) => {
  t.mock.method(console, "error", () => {});
  const fcm = (status, errorCode, message = "", more = []) => isGoneForFcm(status, JSON.stringify({ error: { message, details: [{ errorCode }, ...more] } }));
  assert.equal(isGoneForFcm(200, "{}"), false);
  assert.equal(fcm(404, "UNREGISTERED"), true);
  assert.equal(fcm(403, "SENDER_ID_MISMATCH"), true);
  assert.equal(fcm(400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token"), true);
  assert.equal(fcm(400, "INVALID_ARGUMENT", "Request contains an invalid argument.", [{ fieldViolations: [{ field: "message.token" }] }]), true);
  assert.equal(fcm(400, "INVALID_ARGUMENT", "Message too big"), false, "the token is right");
  for (const [status, code] of [[401, "THIRD_PARTY_AUTH_ERROR"], [429, "QUOTA_EXCEEDED"], [503, "UNAVAILABLE"]]) assert.throws(() => fcm(status, code), /^Error: FCM: /);
  assert.throws(() => isGoneForFcm(502, "<html>"), /FCM: 502 <html>/);

  const apns = (status, reason) => isGoneForApns(status, JSON.stringify({ reason }));
  assert.equal(isGoneForApns(200, ""), false);
  assert.deepEqual([apns(410, "Unregistered"), apns(400, "BadDeviceToken"), apns(400, "DeviceTokenNotForTopic")], [true, true, true]);
  assert.deepEqual([apns(400, "BadCollapseId"), apns(413, "PayloadTooLarge")], [false, false]);
  for (const [status, reason] of [[403, "ExpiredProviderToken"], [429, "TooManyRequests"], [503, "Shutdown"]]) assert.throws(() => apns(status, reason), /^Error: APNs: /);
});

test("the token for APNs stays for half an hour", () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const token = apnsTokens({ keyId: "K", teamId: "T", key: privateKey.export({ type: "pkcs8", format: "pem" }) });
  const first = token(1000);
  assert.equal(token(1000 + 1799), first);
  assert.notEqual(token(1000 + 1800), first);
});

test("the request to FCM is one of HTTP v1", () => {
  const { url, method, headers, body } = fcmRequest(notification(), { push_token: "t1" }, { project: "p", token: "secret" });
  assert.equal(`${method} ${url}`, "POST https://fcm.googleapis.com/v1/projects/p/messages:send");
  assert.equal(headers.authorization, "Bearer secret");
  const { message } = JSON.parse(body);
  assert.deepEqual([message.token, message.notification], ["t1", { title: "ann", body: "hello (and 2 more)" }]);
  assert.ok(Object.values(message.data).every((value) => typeof value === "string"));
  assert.equal(message.android.collapse_key, "feed");
});

test("the request to APNs names the device, the topic and the badge, and its token is signed by ES256", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" });
  const token = apnsToken({ keyId: "K", teamId: "T", key }, 1000);
  const [head, claims, signature] = token.split(".");
  const read = (part) => JSON.parse(Buffer.from(part, "base64url"));
  assert.deepEqual([read(head), read(claims)], [{ alg: "ES256", kid: "K" }, { iss: "T", iat: 1000 }]);
  const by = { key: createPublicKey(publicKey.export({ type: "spki", format: "pem" })), dsaEncoding: "ieee-p1363" };
  assert.ok(verify("sha256", Buffer.from(`${head}.${claims}`), by, Buffer.from(signature, "base64url")));

  const { origin, headers, body } = apnsRequest(notification("msg_1", 1), { push_token: "abc" }, { topic: "app.example", token });
  assert.equal(origin + headers[":path"], "https://api.push.apple.com/3/device/abc");
  assert.deepEqual([headers[":method"], headers["apns-topic"], headers["apns-push-type"]], ["POST", "app.example", "alert"]);
  assert.equal(headers.authorization, `bearer ${token}`);
  assert.deepEqual(JSON.parse(body).aps, { alert: { title: "ann", body: "hello" }, badge: 1, sound: "default", "thread-id": "feed" });
});

test("it runs through a symbolic link too", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "feedgate-examples-"));
  t.after(() => rm(folder, { recursive: true }));
  await symlink(fileURLToPath(new URL(".", import.meta.url)), join(folder, "here"));
  const ended = promisify(execFile)(process.execPath, [join(folder, "here", "push_receiver.mjs")], { env: {} });
  await assert.rejects(ended, ({ stderr }) => /set FEEDGATE_WEBHOOK_KEY/.test(stderr));
});
