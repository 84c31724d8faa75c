// A recommender in Node (18 or newer), without dependencies. It reads the newest items of some authors and what others
// did with them, gives each a score that decays with its age, and puts the best into the feed `picks` of some readers.
//
//     printf '[feeds.picks]\nranked = true\n' > feedgate.toml        the server's settings
//     FEEDGATE_KEY=$(cat data/secrets/api_key) node examples/ranker/ranker.mjs --authors ann,cid --readers bob
//
// Run it as often as you like, say once a minute: devices get only what differs from the ranking before.

import { parseArgs } from "node:util";

import { json } from "../shared/answer.js";
import { run } from "./rank.js";

/** A client of the API. A refusal is a problem (RFC 9457) that says what was wrong. */
function client(url, key) {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    const value = await json(response);
    if (!response.ok) throw new Error(`${value.title}: ${value.detail}`);
    return value;
  };
}

const options = { authors: { type: "string" }, readers: { type: "string" }, feed: { type: "string", default: "picks" } };
const { authors, readers, feed } = parseArgs({ options }).values;
if (!authors || !readers) {
  console.error("give --authors and --readers, with commas between the names");
  process.exit(2);
}
const { FEEDGATE_URL: url = "http://127.0.0.1:8080", FEEDGATE_KEY: key } = process.env;
if (!key) {
  console.error("set FEEDGATE_KEY to what stands in data/secrets/api_key");
  process.exit(2);
}
const call = client(url, key);
for (const [reader, { added, moved, removed }] of Object.entries(await run(call, authors.split(","), readers.split(","), feed)))
  console.log(`${reader}: ${added} added, ${moved} moved, ${removed} removed`);
