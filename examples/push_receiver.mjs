// A receiver of the calls of push.webhook_url in Node (18 or newer), without dependencies. It checks each call, tells FCM
// and APNs, and answers which devices are gone.
//
//     FEEDGATE_WEBHOOK_KEY=$(cat data/secrets/webhook_key) node examples/push_receiver.mjs
//
// Without credentials of FCM or APNs it prints the requests that it would send:
//     FCM_PROJECT, FCM_TOKEN        the project, and an OAuth 2 access token of a service account
//     APNS_TOPIC, APNS_KEY_ID, APNS_TEAM_ID, APNS_KEY    the app's bundle id, and the key of AuthKey_….p8 as PEM

import { createHmac, sign, timingSafeEqual } from "node:crypto";
import { realpathSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:http2";
import { pathToFileURL } from "node:url";

/** How far the clock of the sender may be off, in seconds. A call that is older may be one that somebody repeats. */
const TOLERANCE_SECS = 300;

/** The largest call: 100 notifications with 32 devices each, and an item. */
const CALL_MAX_BYTES = 32 * 1024 * 1024;

/** How long a token for APNs is used, in seconds. APNs takes a new one every 20 minutes, and wants one every hour. */
const APNS_TOKEN_SECS = 30 * 60;

/** How many tellings of a device are remembered, so that a repeated call tells none twice. */
const REMEMBERED = 100_000;

/** Whether a call is signed by one of these keys (`whsec_…`), as Standard Webhooks says: https://www.standardwebhooks.com */
export function isSigned(headers, body, keys, nowSecs = Date.now() / 1000) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  if (!id || !/^\d+$/.test(timestamp ?? "") || Math.abs(nowSecs - timestamp) > TOLERANCE_SECS) return false;
  return keys.some((key) => {
    const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64");
    const right = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest();
    return signatures.split(" ").some((signature) => {
      const [version, text = ""] = signature.split(",");
      const given = Buffer.from(text, "base64");
      return version === "v1" && given.length === right.length && timingSafeEqual(given, right);
    });
  });
}

/** What the user is shown. Yours says more: `newest` is the whole item, as your backend has published it. */
function shown({ newest, unread }) {
  const text = newest.body?.text ?? "There is something new";
  return { title: newest.author, body: unread > 1 ? `${text} (and ${unread - 1} more)` : `${text}` };
}

/** The request that tells FCM (HTTP v1): https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages/send */
export function fcmRequest(notification, device, { project, token }) {
  const { id, feed, unread, newest } = notification;
  const message = {
    token: device.push_token,
    notification: shown(notification),
    // Every value of `data` must be a string.
    data: { id, feed, item: newest.id, unread: `${unread}` },
    // A newer notification of the same feed takes the place of the older one.
    android: { priority: "HIGH", collapse_key: feed, notification: { tag: feed, notification_count: unread } },
  };
  return {
    url: `https://fcm.googleapis.com/v1/projects/${project}/messages:send`,
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ message }),
  };
}

/** The token that APNs wants: a JWT by ES256. It is good for an hour. */
export function apnsToken({ keyId, teamId, key }, nowSecs = Math.floor(Date.now() / 1000)) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = `${part({ alg: "ES256", kid: keyId })}.${part({ iss: teamId, iat: nowSecs })}`;
  const signature = sign("sha256", Buffer.from(head), { key, dsaEncoding: "ieee-p1363" });
  return `${head}.${signature.toString("base64url")}`;
}

/** A function that answers a token for APNs, for half an hour the one of before. */
export function apnsTokens(signer) {
  let [token, madeAt] = [null, -Infinity];
  return (nowSecs = Math.floor(Date.now() / 1000)) => {
    if (nowSecs - madeAt >= APNS_TOKEN_SECS) [token, madeAt] = [apnsToken(signer, nowSecs), nowSecs];
    return token;
  };
}

/** The request that tells APNs, over HTTP/2: https://developer.apple.com/documentation/usernotifications */
export function apnsRequest(notification, device, { topic, token }) {
  const { feed, unread, newest } = notification;
  const payload = {
    aps: { alert: shown(notification), badge: unread, sound: "default", "thread-id": feed },
    feed,
    item: newest.id,
  };
  return {
    origin: "https://api.push.apple.com",
    headers: {
      ":method": "POST",
      ":path": `/3/device/${device.push_token}`,
      authorization: `bearer ${token}`,
      "apns-topic": topic,
      "apns-push-type": "alert",
      "apns-priority": "10",
      // A newer notification of the same feed takes the place of the older one.
      "apns-collapse-id": feed,
      "apns-expiration": `${Math.floor(Date.now() / 1000) + 24 * 3600}`,
    },
    body: JSON.stringify(payload),
  };
}

/** Refusals that pass: the service is busy, or the credentials have to be renewed. */
const PASSING = [401, 403, 408, 429];

/** Throws if another try may help. If none does, as of a text that is too long, answers false: the device is not gone. */
function refused(service, status, why) {
  const message = `${service}: ${status} ${why}`;
  if (!(status >= 400 && status < 500) || PASSING.includes(status)) throw new Error(message);
  console.error(message);
  return false;
}

/** Whether a device is gone, as FCM answered. Throws if FCM is to be told again. */
export function isGoneForFcm(status, text) {
  if (status === 200) return false;
  const { message = text, details = [] } = parsed(text).error ?? {};
  const codes = details.map(({ errorCode }) => errorCode);
  if (codes.includes("UNREGISTERED") || codes.includes("SENDER_ID_MISMATCH")) return true;
  // The argument may be another one, of which the device knows nothing.
  const isTheToken = /registration token/i.test(message) || details.some(({ fieldViolations }) => fieldViolations?.some(({ field }) => field === "message.token"));
  return (codes.includes("INVALID_ARGUMENT") && isTheToken) || refused("FCM", status, message);
}

/** Whether a device is gone, as APNs answered. Throws if APNs is to be told again. */
export function isGoneForApns(status, text) {
  if (status === 200) return false;
  const { reason = text } = parsed(text);
  return status === 410 || ["BadDeviceToken", "DeviceTokenNotForTopic"].includes(reason) || refused("APNs", status, reason);
}

/** The JSON of an answer, or nothing: a proxy may answer in place of the service. */
function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** CALL OF FCM. Answers whether the device is gone; throws if FCM is to be told again. */
async function tellFcm(request) {
  const answer = await fetch(request.url, { ...request, signal: AbortSignal.timeout(5000) });
  return isGoneForFcm(answer.status, await answer.text());
}

/** CALL OF APNs, over a connection that a real receiver keeps. Answers whether the device is gone; throws as tellFcm does. */
async function tellApns({ origin, headers, body }) {
  const connection = connect(origin);
  try {
    const [status, text] = await new Promise((resolve, reject) => {
      connection.on("error", reject);
      const stream = connection.request(headers).setEncoding("utf8");
      let [status, text] = [0, ""];
      stream.setTimeout(5000, () => reject(new Error("APNs did not answer")));
      stream.on("error", reject);
      stream.on("response", (answer) => (status = answer[":status"]));
      stream.on("data", (piece) => (text += piece));
      stream.on("end", () => resolve([status, text]));
      stream.on("close", () => reject(new Error("APNs closed the stream")));
      stream.end(body);
    });
    return isGoneForApns(status, text);
  } finally {
    connection.close();
  }
}

/** The platforms of registered devices, each with what tells one device and answers whether it is gone. */
export function platforms(env = process.env, print = console.log) {
  const { FCM_PROJECT: project, FCM_TOKEN: token, APNS_TOPIC: topic } = env;
  const signer = { keyId: env.APNS_KEY_ID, teamId: env.APNS_TEAM_ID, key: env.APNS_KEY };
  const tokenOfNow = apnsTokens(signer);
  const dry = (what, request) => (print(what, request.body), false);
  return {
    fcm: async (notification, device) => {
      const request = fcmRequest(notification, device, { project, token });
      return token ? tellFcm(request) : dry("to FCM:", request);
    },
    apns: async (notification, device) => {
      const request = apnsRequest(notification, device, { topic, token: signer.key ? tokenOfNow() : "" });
      return signer.key ? tellApns(request) : dry("to APNs:", request);
    },
  };
}

/** Tells a device of a notification, once also if calls come twice or at the same time. Answers whether it is gone. */
function tellOnce(notification, device, told, tell) {
  // A device that is gone may come again with the same id, by another token.
  const key = `${notification.id} ${device.device} ${device.push_token}`;
  if (!told.has(key)) {
    const telling = Promise.resolve().then(() => tell[device.platform]?.(notification, device));
    told.set(key, telling);
    telling.catch(() => told.delete(key)); // the next call tells it
    if (told.size > REMEMBERED) told.delete(told.keys().next().value);
  }
  return told.get(key);
}

/**
 * Takes the notifications of one call. `told`: a Map that remembers what was told. Answers which devices are gone. One
 * that cannot be told holds up no other: all are tried before the first error is thrown.
 */
export async function take({ notifications }, told, tell) {
  const [gone, errors] = [[], []];
  for (const notification of notifications) {
    const { user, devices } = notification;
    const ends = await Promise.allSettled(devices.map((device) => tellOnce(notification, device, told, tell)));
    ends.forEach(({ value, reason }, n) => {
      if (reason) errors.push(reason);
      else if (value) gone.push({ user, device: devices[n].device });
    });
  }
  if (errors.length > 0) throw errors[0];
  return { gone };
}

/** A server that answers the calls of Feedgate. */
export function receiver({ keys, tell = platforms() }) {
  const told = new Map();
  return createServer(async (request, response) => {
    const answer = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const pieces = [];
    let bytes = 0;
    try {
      for await (const piece of request) {
        bytes += piece.length;
        if (bytes > CALL_MAX_BYTES) return void answer(413, { error: "the call is too large" });
        pieces.push(piece);
      }
      const body = Buffer.concat(pieces).toString();
      if (!isSigned(request.headers, body, keys)) return void answer(401, { error: "the signature is wrong" });
      answer(200, await take(JSON.parse(body), told, tell));
    } catch (error) {
      // Feedgate tries again later. A device that was told before is not told twice.
      answer(503, { error: error.message });
    }
  });
}

// The path of a program may lead through a symbolic link; the URL of a module never does.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const { FEEDGATE_WEBHOOK_KEY: key, PORT: port = 9000 } = process.env;
  if (!key) throw new Error("set FEEDGATE_WEBHOOK_KEY to what stands in data/secrets/webhook_key");
  receiver({ keys: [key] }).listen(port, "127.0.0.1", () => console.log(`waiting for calls at http://127.0.0.1:${port}`));
}
