// Phones that run unmodified SDKs of other languages than JavaScript, each a program beside this file, through one story:
// away, live, the death of the server, a delete, and a named feed beside the main one.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Feed } from "../../examples/feed.js";
import { Home } from "../actors/home.js";
import { TOOLS } from "../actors/process.js";
import { until } from "../actors/until.js";

const CONFIG = '[gateway]\nping_interval_secs = 1\n[feeds.notifications]\nkinds = ["like"]\n';

const PYTHON = [join(TOOLS, "python", "bin", "python"), fileURLToPath(new URL("python_phone.py", import.meta.url))];
const JAVA = ["java", "-cp", ["phone.jar", "dependency/*"].map((name) => join(TOOLS, "phones", "java", name)).join(":"), "Phone"];

/** The SDKs: how the phone is started, and whether it starts from what was acknowledged, because the SDK takes no position from the app. */
const SDKS = {
  "centrifuge-python over JSON": { command: PYTHON, environment: { FEEDGATE_PROTOCOL: "json" } },
  "centrifuge-python over Protobuf": { command: PYTHON, environment: { FEEDGATE_PROTOCOL: "protobuf" } },
  "centrifuge-go": { command: [join(TOOLS, "phones", "go-phone")], stored: true },
  "centrifuge-java": { command: JAVA, stored: true },
};

/** A phone with a feed for each page; its lines are {channel, offset, change} or {channel, subscribed, data}. */
function phoneOf({ command: [program, ...options], environment }, t, server, pages, token) {
  const positions = Object.fromEntries(Object.entries(pages).map(([channel, { position }]) => [channel, position]));
  const child = spawn(program, [...options, server.websocket, JSON.stringify(positions)], {
    env: { ...process.env, ...environment, TOKEN: token },
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const phone = { feeds: {}, subscriptions: {}, data: {}, errors: [], ended: null };
  for (const [channel, page] of Object.entries(pages)) {
    phone.feeds[channel] = new Feed();
    phone.feeds[channel].reset(page);
    phone.subscriptions[channel] = [];
  }
  child.once("error", (error) => phone.errors.push(String(error)));
  child.once("exit", (code) => (phone.ended = code));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { channel, offset, change, subscribed, data, error } = JSON.parse(line);
    if (error) phone.errors.push(error);
    else if (!subscribed) phone.feeds[channel].apply(change, { offset });
    else {
      phone.subscriptions[channel].push(subscribed.recovered);
      phone.data[channel] ??= data;
    }
  });
  return phone;
}

for (const [name, sdk] of Object.entries(SDKS)) {
  test(`${name} catches up on two feeds, follows live, survives the server's death, and ends with the same feeds`, (t) => story(t, sdk));
}

async function story(t, sdk) {
  const server = await Home.start(t, { config: CONFIG });
  await server.follow("ann", "bob");
  const pages = { feed: await server.page("ann"), notifications: await server.page("ann", { name: "notifications" }) };
  await server.publishMany("bob", 300);
  await server.publish("bob", { text: "a like" }, { kind: "like" });
  await server.drained();

  const phone = phoneOf(sdk, t, server, pages, await server.token("ann", { device: "tablet" }));
  const shows = (posts, likes) => {
    const shown = () => [phone.feeds.feed.items().length, phone.feeds.notifications.items().length];
    const wanted = JSON.stringify([posts, likes]);
    return until(`${posts} posts, ${likes} likes`, () => phone.ended === null && JSON.stringify(shown()) === wanted, { seen: () => phone });
  };
  await shows(300, 1);

  const { id } = await server.publish("bob", { text: "live" });
  await server.publish("bob", { text: "a live one" }, { kind: "like" });
  await shows(301, 2);
  await server.kill();
  await server.start();
  await server.call("DELETE", `/v1/items/${id}`);
  await server.publish("bob", { text: "another" }, { kind: "like" });
  await server.publishMany("bob", 10, 302);
  const recovered = () => Object.values(phone.subscriptions).every((times) => times.length === 2);
  await until("both have recovered", recovered, { seen: () => phone });
  await shows(310, 3);

  assert.deepEqual(phone.subscriptions, { feed: [true, true], notifications: [true, true] });
  for (const [channel, feed] of Object.entries(phone.feeds)) assert.deepEqual(feed.items(), await server.feed("ann", channel));
  if (sdk.stored) assert.deepEqual(phone.data, Object.fromEntries(Object.entries(pages).map(([channel, { position }]) => [channel, position])));
}
