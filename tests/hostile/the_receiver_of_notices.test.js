// A receiver that means harm, or a URL that leads where it must not: calls end in time, nothing private is reached, and
// the server goes on.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { Webhook, register } from "../actors/webhook.js";

/** The server over this webhook, after ann has posted to bob, who is away. */
async function posted(t, webhook, more = {}, others = []) {
  const server = await Server.start(t, { config: webhook.config({ tries: 2, ...more }) });
  await webhook.open(server);
  await server.follow("bob", "ann");
  for (const user of ["bob", ...others]) await register(server, user, "phone");
  await server.drained();
  await server.publish("ann", { text: "hello" });
  return server;
}

/** Why the server gave the notice up. */
async function givenUp(server) {
  const notices = async () => (await server.call("GET", "/v1/push/dead")).notices;
  const [notice] = await until("it is given up", async () => ((await notices()).length > 0 ? notices() : null));
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  return notice.error;
}

test("a receiver that never answers is given up after the timeout, and holds up nothing", async (t) => {
  const webhook = await Webhook.start(t);
  webhook.answer = () => undefined;
  const server = await posted(t, webhook, { timeout_secs: 1 });
  assert.match(await givenUp(server), /no answer within 1s/);
});

test("a receiver that is not there is given up with the reason", async (t) => {
  const webhook = await Webhook.start(t);
  const server = await Server.start(t, { config: webhook.config({ tries: 2 }) });
  await webhook.down();
  await server.follow("bob", "ann");
  await register(server, "bob", "phone");
  await server.publish("ann", { text: "hello" });
  assert.match(await givenUp(server), /refused/i);
});

test("an endless answer is read to a bound, and what was taken stays taken", async (t) => {
  const webhook = await Webhook.start(t);
  let sent = 0;
  const ended = [];
  webhook.answer = (request, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(65_536))) sent += 65_536;
    };
    response.on("drain", more);
    response.on("close", () => ended.push(sent));
    more();
  };
  const server = await posted(t, webhook);
  await until("the answer is cut off", () => ended.length > 0);
  assert.ok(ended[0] < 64 * 1024 * 1024, `${ended[0]} bytes`);
  assert.deepEqual((await server.call("GET", "/v1/push/dead")).notices, []);
  assert.equal(webhook.calls.length, 1);
});

test("a redirect is not followed, to the metadata of a cloud or anywhere else", async (t) => {
  let asked = 0;
  const elsewhere = createServer((request, response) => ((asked += 1), response.end()));
  elsewhere.listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  t.after(() => elsewhere.close());
  for (const location of ["http://169.254.169.254/latest/meta-data/", `http://127.0.0.1:${elsewhere.address().port}/`]) {
    const webhook = await Webhook.start(t);
    webhook.answer = (request, response) => response.writeHead(307, { location }).end();
    const server = await posted(t, webhook);
    assert.match(await givenUp(server), /307.*no redirect is followed/);
  }
  assert.equal(asked, 0);
});

test("a name that leads to a private address is refused when it is connected to", async (t) => {
  const webhook = await Webhook.start(t);
  const url = webhook.url.replace("http://127.0.0.1", "https://localhost");
  const server = await posted(t, webhook, { webhook_url: url });
  assert.match(await givenUp(server), /localhost has the address .* is private; name the host in push.allow_private/);
  assert.equal(webhook.calls.length + webhook.forged.length, 0);
});

test("a private address in the settings is refused at the start", async (t) => {
  for (const url of ["https://169.254.169.254/", "https://[::1]/", "https://10.1.2.3/x"]) {
    const start = Server.start(t, { config: `[push]\nwebhook_url = "${url}"\n` });
    await assert.rejects(start, /is private; name the host in push.allow_private/);
  }
});

test("an answer that names devices of others takes none of them away", async (t) => {
  const webhook = await Webhook.start(t);
  const gone = [{ user: "eve", device: "phone" }, { user: "bob", device: "tablet" }, { user: "b b", device: "" }];
  webhook.answer = (request, response) => response.end(JSON.stringify({ gone: gone.slice(0, 2) }));
  const server = await posted(t, webhook, {}, ["eve"]);
  await until("it is told", () => webhook.calls.length > 0);
  webhook.answer = (request, response) => response.end(JSON.stringify({ gone }));
  // The answer to a call is taken in before the next call.
  for (const calls of [1, 2]) {
    await server.publish("ann", { text: "again" });
    await until("it is told", () => webhook.calls.length > calls);
  }
  for (const user of ["bob", "eve"]) {
    assert.equal((await server.call("GET", `/v1/users/${user}/devices`)).devices.length, 1);
  }
});
