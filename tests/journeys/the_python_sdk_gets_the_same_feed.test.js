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

/** A phone that runs centrifuge-python; its lines are {offset, change} or {subscribed}. */
function pythonPhone(t, server, position, token) {
  const child = spawn(join(TOOLS, "python", "bin", "python"), [SCRIPT, server.websocket, JSON.stringify(position)], {
    env: { ...process.env, TOKEN: token },
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const phone = { feed: null, subscriptions: [], errors: [], ended: null };
  child.once("exit", (code) => (phone.ended = code));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { offset, change, subscribed, error } = JSON.parse(line);
    if (error) phone.errors.push(error);
    else if (subscribed) phone.subscriptions.push(subscribed);
    else phone.feed.apply(change, { offset });
  });
  return phone;
}

test("the python sdk catches up, follows live, survives the server's death, and ends with the same feed", async (t) => {
  const server = await Home.start(t, { config: "[gateway]\nping_interval_secs = 1\n" });
  await server.follow("ann", "bob");
  const page = await server.page("ann");
  await server.publishMany("bob", 300);
  await server.drained();

  const phone = pythonPhone(t, server, page.position, await server.token("ann", { device: "py" }));
  phone.feed = new Feed();
  phone.feed.reset(page);
  const shows = (count) =>
    until(`${count} posts`, () => phone.ended === null && phone.feed.items().length === count, { seen: () => phone });
  await shows(300);

  const { id } = await server.publish("bob", { text: "live" });
  await shows(301);
  await server.kill();
  await server.start();
  await server.call("DELETE", `/v1/items/${id}`);
  await server.publishMany("bob", 10, 302);
  await until("it has recovered", () => phone.subscriptions.length === 2, { seen: () => phone });
  await shows(310);

  assert.deepEqual(phone.subscriptions.map(({ recovered }) => recovered), [true, true]);
  assert.deepEqual(phone.feed.items(), await server.feed("ann"));
});
