// A backend in Node (18 or newer), without dependencies: bob follows ann, ann posts, bob may watch.
//
//     FEEDGATE_KEY=$(cat data/secrets/api_key) node examples/backend.mjs "hello"

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { json } from "./shared/answer.js";

const url = process.env.FEEDGATE_URL ?? "http://127.0.0.1:8080";
const key = process.env.FEEDGATE_KEY;
if (!key) throw new Error("set FEEDGATE_KEY to what stands in data/secrets/api_key");

/** The longest wait that a server may ask for, in ms. */
const WAIT_MAX_MS = 10_000;

/** One request. A refusal is a problem (RFC 9457) that says what was wrong. Its head says `status` and `waitMs`. */
async function call(method, path, body, headers = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  try {
    const value = await json(response);
    if (response.ok) return value;
    throw new Error(`${value.title}: ${value.detail}`);
  } catch (error) {
    const waitMs = 1000 * (Number(response.headers.get("retry-after")) || 0);
    throw Object.assign(error, { status: response.status, waitMs });
  }
}

/** Whether the request is to be sent again: the network failed, or the server, or a proxy, cannot answer now. */
const isForLater = (error) => error instanceof TypeError || error.status === 429 || error.status >= 500;

/** Accepted means on disk. Sent again with the same key, it stays one item. */
async function publish(author, body, once = randomUUID()) {
  for (let wait = 200; ; wait *= 2) {
    try {
      return await call("POST", "/v1/items", { author, body }, { "idempotency-key": once });
    } catch (error) {
      if (!isForLater(error) || wait > 5000) throw error;
      await sleep(Math.max(wait, Math.min(error.waitMs ?? 0, WAIT_MAX_MS)));
    }
  }
}

/** The newest of a reader's feed, once the item is there: a follow and a post arrive soon after they are accepted. */
async function feedWith(reader, item) {
  for (let wait = 20; wait < 10000; wait *= 2) {
    const { items } = await call("GET", `/v1/users/${reader}/feed?limit=3`);
    if (items.some(({ id }) => id === item)) return items;
    await sleep(wait);
  }
  throw new Error(`item ${item} is not in the feed of ${reader} yet`);
}

await call("PUT", "/v1/users/bob/following/ann");
const item = await publish("ann", { text: process.argv[2] ?? "hello" });
console.log(`accepted  ${item.id}`);
for (const { published_at, author, body } of await feedWith("bob", item.id))
  console.log(`in feed   ${new Date(published_at).toISOString()}  ${author}: ${body.text}`);
const { token } = await call("POST", "/v1/users/bob/token", { device_id: "web", ttl: 3600 });
console.log(`token     ${token}`); // for page.html
