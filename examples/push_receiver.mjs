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

/** The token that APNs wants: a JWT by ES256. It is good for an hour, and may be made anew every 20 minutes. */
export function apnsToken({ keyId, teamId, key }, nowSecs = Math.floor(Date.now() / 1000)) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = `${part({ alg: "ES256", kid: keyId })}.${part({ iss: teamId, iat: nowSecs })}`;
  const signature = sign("sha256", Buffer.from(head), { key, dsaEncoding: "ieee-p1363" });
  return `${head}.${signature.toString("base64url")}`;
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

/** CALL OF FCM. Answers whether the device is gone; throws if FCM could not be told. */
async function tellFcm(request) {
  const answer = await fetch(request.url, { ...request, signal: AbortSignal.timeout(5000) });
  if (answer.ok) return false;
  const { error } = await answer.json();
  if (error?.details?.some(({ errorCode }) => errorCode === "UNREGISTERED")) return true;
  throw new Error(`FCM: ${answer.status} ${error?.message}`);
}

/** CALL OF APNs. Answers whether the device is gone; throws if APNs could not be told. A real receiver keeps the connection. */
async function tellApns({ origin, headers, body }) {
  const connection = connect(origin);
  try {
    return await new Promise((resolve, reject) => {
      connection.on("error", reject);
      const stream = connection.request(headers);
      stream.setTimeout(5000, () => reject(new Error("APNs did not answer")));
      stream.on("error", reject);
      stream.on("response", ({ ":status": status }) => {
        if (status === 200 || status === 410) resolve(status === 410);
        else reject(new Error(`APNs: ${status}`));
      });
      stream.end(body);
    });
  } finally {
    connection.close();
  }
}

/** The platforms of registered devices, each with what tells one device and answers whether it is gone. */
export function platforms(env = process.env, print = console.log) {
  const { FCM_PROJECT: project, FCM_TOKEN: token, APNS_TOPIC: topic } = env;
  const signer = { keyId: env.APNS_KEY_ID, teamId: env.APNS_TEAM_ID, key: env.APNS_KEY };
  const dry = (what, request) => (print(what, request.body), false);
  return {
    fcm: async (notification, device) => {
      const request = fcmRequest(notification, device, { project, token });
      return token ? tellFcm(request) : dry("to FCM:", request);
    },
    apns: async (notification, device) => {
      const request = apnsRequest(notification, device, { topic, token: signer.key ? apnsToken(signer) : "" });
      return signer.key ? tellApns(request) : dry("to APNs:", request);
    },
  };
}

/** Tells a device of a notification, once also if calls come twice or at the same time. Answers whether it is gone. */
function tellOnce(notification, device, told, tell) {
  const key = `${notification.id} ${device.device}`;
  if (!told.has(key)) {
    const telling = Promise.resolve().then(() => tell[device.platform]?.(notification, device));
    told.set(key, telling);
    telling.catch(() => told.delete(key)); // the next call tells it
    if (told.size > REMEMBERED) told.delete(told.keys().next().value);
  }
  return told.get(key);
}

/** Takes the notifications of one call. `told`: a Map that remembers what was told. Answers which devices are gone. */
export async function take({ notifications }, told, tell) {
  const gone = [];
  for (const notification of notifications) {
    for (const device of notification.devices) {
      if (await tellOnce(notification, device, told, tell)) gone.push({ user: notification.user, device: device.device });
    }
  }
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
