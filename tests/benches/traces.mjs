// What traces cost: the processor time that one process spends for a post, without an endpoint, with one post of a hundred
// traced, and with each of them traced.
//
//     cargo build --release --features feedgate/otlp
//     node tests/benches/traces.mjs target/release [ROUNDS]
//
// Three servers run at the same time, and take the same posts in turns: so a machine that is slow for a while is slow for
// each of them. A post goes to five followers, each with one device. The ratios are those of a server's rounds to the rounds
// of the server without an endpoint beside them: the median, and the middle half.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:http";
import { resolve } from "node:path";

import { Server } from "../actors/server.js";
import { Wire } from "../actors/wire.js";

const READERS = 100;
const FOLLOWS = 5; // of each reader
const POSTS = 500; // for each server in a round
const AT_ONCE = 8;
const WARM_UP_ROUNDS = 2;
const TICKS_PER_SECOND = 100;

const [bin, rounds = "30"] = process.argv.slice(2);
if (!bin || !(Number(rounds) > 0)) {
  console.error("usage: node tests/benches/traces.mjs DIRECTORY_OF_THE_PROGRAM [ROUNDS]");
  process.exit(2);
}
const cleanUps = [];
const test = { after: (work) => cleanUps.push(work) };
try {
  await main();
} finally {
  for (const work of cleanUps.reverse()) await work();
}

async function main() {
  const none = await home("no endpoint");
  const homes = [none, await home("sample = 0.01", 0.01), await home("sample = 1", 1)];
  for (let round = -WARM_UP_ROUNDS; round < Number(rounds); round += 1) {
    if (round === 0) for (const { collector } of homes) collector.bytes = 0;
    // Each server is the first in a third of the rounds.
    const first = (round + WARM_UP_ROUNDS) % homes.length;
    for (const one of [...homes.slice(first), ...homes.slice(0, first)]) {
      if (round >= 0) one.spent.push(await spent(one.server));
      await publish(one.server);
    }
  }
  for (const one of homes) one.spent.push(await spent(one.server));
  const base = steps(none.spent);
  const posts = Number(rounds) * POSTS;
  for (const { name, collector, spent: all } of homes) {
    const each = ((1e6 * (all.at(-1) - all[0])) / posts).toFixed(0);
    const sent = (collector.bytes / posts).toFixed(0);
    const ratios = steps(all).map((step, round) => step / base[round]).sort((a, b) => a - b);
    const [low, median, high] = [0.25, 0.5, 0.75].map((part) => ratios[Math.floor(part * (ratios.length - 1))].toFixed(2));
    console.log(`${name}: ${each} us of processor time and ${sent} bytes of traces a post; ${median} times the time (${low} to ${high})`);
  }
}

/** By how much each number is more than the one before. A server sends the last traces of a round after it. */
function steps(numbers) {
  return numbers.slice(1).map((number, at) => number - numbers[at]);
}

/** A collector that takes all that it is sent and keeps nothing. */
async function collects() {
  const collector = { bytes: 0 };
  const server = createServer((asked, answer) => {
    asked.on("data", (data) => (collector.bytes += data.length));
    asked.on("end", () => answer.writeHead(200, { "content-type": "application/x-protobuf" }).end());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  test.after(() => server.close());
  collector.url = `http://127.0.0.1:${server.address().port}`;
  return collector;
}

/** A server that traces this part of the posts, or has no endpoint for traces, with its readers, all of them online. */
async function home(name, sample) {
  const collector = await collects();
  const config = sample === undefined ? "" : `[traces]\nendpoint = "${collector.url}"\nsample = ${sample}\n`;
  const server = await Server.start(test, { bin: resolve(bin), config });
  const ops = Array.from({ length: READERS * FOLLOWS }, (_, n) => {
    const reader = Math.floor(n / FOLLOWS);
    return { op: "follow", user: `reader-${reader}`, author: `author-${(reader + (n % FOLLOWS)) % READERS}` };
  });
  await server.call("POST", "/v1/follows/batch", { ops });
  await server.drained();
  for (let n = 0; n < READERS; n += 1) {
    const wire = await Wire.open(test, server, { token: await server.token(`reader-${n}`, { device: "phone" }) });
    const { subscribe } = await wire.ask("subscribe", { channel: "feed", recoverable: true });
    if (!subscribe) throw new Error(`reader-${n} could not subscribe`);
    wire.socket.removeAllListeners("data").on("data", () => {});
  }
  return { name, server, collector, spent: [] };
}

/** Publishes the posts of a round and waits until they have been delivered. */
async function publish(server) {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  let next = 0;
  const publisher = async () => {
    while (next < POSTS) await post(server, agent, next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, publisher));
  agent.destroy();
  await server.drained();
}

function post(server, agent, n) {
  const body = JSON.stringify({ author: `author-${n % READERS}`, body: { text: `post ${n}` } });
  const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json", "content-length": body.length };
  return new Promise((resolve, reject) => {
    const asked = request(`${server.url}/v1/items`, { method: "POST", agent, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`the status was ${answer.statusCode}`))));
    });
    asked.on("error", reject).end(body);
  });
}

/** The processor time that the server's process has spent, seconds. */
async function spent({ pid }) {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
