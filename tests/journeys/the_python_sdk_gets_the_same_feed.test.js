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

const SCRIPT = fileURLToPath(new URL("python_phone.py", import.meta.url));

const CONFIG = '[gateway]\nping_interval_secs = 1\n[feeds.notifications]\nkinds = ["like"]\n';

/** A phone that runs centrifuge-python, with a feed for each page; its lines are {channel, offset, change} or {channel, subscribed}. */
function pythonPhone(t, server, pages, token) {
  const positions = Object.fromEntries(Object.entries(pages).map(([channel, { position }]) => [channel, position]));
  const child = spawn(join(TOOLS, "python", "bin", "python"), [SCRIPT, server.websocket, JSON.stringify(positions)], {
    env: { ...process.env, TOKEN: token },
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const phone = { feeds: {}, subscriptions: {}, errors: [], ended: null };
  for (const [channel, page] of Object.entries(pages)) {
    phone.feeds[channel] = new Feed();
    phone.feeds[channel].reset(page);
    phone.subscriptions[channel] = [];
  }
  child.once("exit", (code) => (phone.ended = code));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { channel, offset, change, subscribed, error } = JSON.parse(line);
    if (error) phone.errors.push(error);
    else if (subscribed) phone.subscriptions[channel].push(subscribed.recovered);
    else phone.feeds[channel].apply(change, { offset });
  });
  return phone;
}

test("the python sdk catches up on two feeds, follows live, survives the server's death, and ends with the same feeds", async (t) => {
  const server = await Home.start(t, { config: CONFIG });
  await server.follow("ann", "bob");
  const pages = { feed: await server.page("ann"), notifications: await server.page("ann", { name: "notifications" }) };
  await server.publishMany("bob", 300);
  await server.publish("bob", { text: "a like" }, { kind: "like" });
  await server.drained();

  const phone = pythonPhone(t, server, pages, await server.token("ann", { device: "py" }));
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
});
