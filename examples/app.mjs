// An app in Node (18 or newer): it shows a feed, scrolls up, and goes on where it was after it was killed.
//
//     cd examples && npm install --no-save centrifuge@5 ws@8
//     FEEDGATE_KEY=$(cat ../data/secrets/api_key) node app.mjs bob bob.json
//
// FILE holds the list and its position between two runs. The line `older` on stdin loads an older page.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { Centrifuge, UnauthorizedError } from "centrifuge";
import WebSocket from "ws";

import { Feed, FeedGap } from "./feed.js";

const SAVE_EVERY_MS = 1000;
const TOKEN_WITHIN_MS = 10_000;

const url = process.env.FEEDGATE_URL ?? "http://127.0.0.1:8080";
const key = process.env.FEEDGATE_KEY;
const [user, file] = process.argv.slice(2);
if (!file) throw new Error("usage: node app.mjs USER FILE");
if (!key) throw new Error("set FEEDGATE_KEY to what stands in data/secrets/api_key");

let saved = null; // what the file holds

/** The list that the last run left for this user, or a new one. A file that cannot be used counts as none. */
function restored() {
  try {
    saved = readFileSync(file, "utf8");
    const kept = JSON.parse(saved);
    if (kept.user === user) return Feed.from(kept.feed);
  } catch (error) {
    if (error.code !== "ENOENT") console.error(`${file} cannot be used: ${error.message}`);
  }
  return new Feed();
}

const feed = restored();

/** A real app asks its own backend for a token: only backends hold the key. */
async function getToken() {
  const response = await fetch(`${url}/v1/users/${user}/token`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ device_id: "app-js" }),
    signal: AbortSignal.timeout(TOKEN_WITHIN_MS),
  });
  if ([401, 403].includes(response.status)) throw new UnauthorizedError(await response.text()); // the SDK stops
  if (!response.ok) throw new Error(`no token: ${response.status} ${await response.text()}`);
  return (await response.json()).token;
}

const client = new Centrifuge(`${url.replace("http", "ws")}/connection/websocket`, { websocket: WebSocket, getToken });
const page = async (cursor) => (await client.rpc("page", { limit: 20, ...(cursor && { cursor }) })).data;

/** Page one again. Changes that come meanwhile are held by the feed. */
async function load() {
  feed.lost();
  feed.reset(await page());
  console.log("loaded page one");
}

/** A gap is repaired by page one, as soon as the connection lets it through. */
async function repair() {
  for (;;) {
    try {
      return await load();
    } catch (error) {
      console.error(error.message);
      await sleep(SAVE_EVERY_MS);
    }
  }
}

let offered = false;

/** The SDK asks for a position at first, and again when the server cannot go on from that one. */
async function getState() {
  if (offered || feed.position === null) await load();
  else console.log(`going on from ${feed.position.offset}`);
  offered = true;
  return { ...feed.position };
}

const subscription = client.newSubscription("feed", { data: { deliver: "items" }, getState });
subscription.on("publication", ({ data, offset }) => {
  try {
    if (feed.apply(data, { offset })) console.log(`${data.op} ${data.item?.id ?? data.item_id ?? data.author}`);
  } catch (error) {
    if (!(error instanceof FeedGap)) throw error;
    repair();
  }
});
subscription.on("error", ({ error }) => console.error(error.message));
client.on("error", ({ error }) => console.error(error.message)); // no token, or nobody answers: the SDK tries again
client.on("disconnected", ({ code, reason }) => {
  console.error(`stopped for good: ${reason} (${code})`);
  process.exit(1);
});

/** Puts a text into the file. A crash leaves the old text there, or the new one, and never a part. */
function write(text) {
  const out = openSync(`${file}.new`, "w");
  try {
    writeFileSync(out, text);
    fsyncSync(out);
  } finally {
    closeSync(out);
  }
  renameSync(`${file}.new`, file);
}

/** Stores the list together with its position, and only then acknowledges. A write that fails is tried again. */
function save() {
  const text = JSON.stringify({ user, feed });
  if (text === saved || feed.position === null) return;
  try {
    write(text);
  } catch (error) {
    return void console.error(`not saved: ${error.message}`);
  }
  saved = text;
  client.rpc("ack", feed.position).catch(() => {}); // the next one says as much
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const cursor = feed.next;
  if (line !== "older" || cursor === null) return;
  try {
    if (!feed.append(await page(cursor), cursor)) console.log("the feed has changed meanwhile: ask again");
  } catch (error) {
    console.error(error.message);
  }
});
setInterval(save, SAVE_EVERY_MS);
subscription.subscribe();
client.connect();
