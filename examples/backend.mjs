// A backend in Node (18 or newer), without dependencies: bob follows ann, ann posts, bob may watch.
//
//     FEEDGATE_KEY=$(cat data/secrets/api_key) node examples/backend.mjs "hello"

import { randomUUID } from "node:crypto";

const url = process.env.FEEDGATE_URL ?? "http://127.0.0.1:8080";
const key = process.env.FEEDGATE_KEY;

/** One request. A refusal is a problem (RFC 9457) that says what was wrong. */
async function call(method, path, body, headers = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) {
    const { title, detail } = JSON.parse(text);
    throw new Error(`${title}: ${detail}`);
  }
  return text && JSON.parse(text);
}

/** Accepted means on disk. Sent again with the same key, it stays one item. */
async function publish(author, body, once = randomUUID()) {
  for (let wait = 200; ; wait *= 2) {
    try {
      return await call("POST", "/v1/items", { author, body }, { "idempotency-key": once });
    } catch (error) {
      if (!(error instanceof TypeError) || wait > 5000) throw error; // fetch throws it when the network fails
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

await call("PUT", "/v1/users/bob/following/ann");
console.log(await publish("ann", { text: process.argv[2] ?? "hello" }));
console.log(await call("GET", "/v1/users/bob/feed?limit=3"));
console.log(await call("POST", "/v1/users/bob/token", { device_id: "web", ttl: 3600 })); // for page.html
