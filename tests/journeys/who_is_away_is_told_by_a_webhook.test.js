// A reader who is away is told of new items through the webhook, and not if the reader comes first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { Webhook, register } from "../actors/webhook.js";

/** A server with its webhook, and ann, whom bob follows. */
async function away(t, more) {
  const webhook = await Webhook.start(t);
  const server = await Home.start(t, { config: webhook.config(more) });
  await webhook.open(server);
  await server.follow("bob", "ann");
  await server.drained();
  return { webhook, server };
}

/** Posts to a reader who is surely told, after which anything that was to come before has come. */
async function lastly(server, webhook, author) {
  await register(server, "last", "phone");
  await server.follow("last", author);
  await server.drained();
  const { id } = await server.publish(author, { text: "the last" });
  await webhook.told("the last", (all) => all.some(({ user, newest }) => user === "last" && newest.id === id));
}

test("a post reaches the webhook with all that the receiver needs, signed", async (t) => {
  const { webhook, server } = await away(t);
  await register(server, "bob", "ios-1", { platform: "apns" });
  await register(server, "bob", "web-1");
  const { id } = await server.publish("ann", { text: "hello" });
  const [told] = await webhook.told("the post", (all) => all.length === 1 && all);

  assert.deepEqual([told.user, told.feed, told.unread], ["bob", "feed", 1]);
  assert.deepEqual(told.devices, [
    { device: "ios-1", platform: "apns", push_token: "token of ios-1" },
    { device: "web-1", platform: "fcm", push_token: "token of web-1" },
  ]);
  assert.deepEqual([told.newest.id, told.newest.author, told.newest.body], [id, "ann", { text: "hello" }]);
  assert.deepEqual(webhook.calls[0].id, told.id);
  assert.deepEqual(webhook.forged, []);
});

test("a direct item and an item of a named feed are told to the devices that want them", async (t) => {
  const webhook = await Webhook.start(t);
  const config = `[feeds.likes]\nkinds = ["like"]\n${webhook.config()}`;
  const server = await Home.start(t, { config });
  await webhook.open(server);
  await register(server, "bob", "phone", { feeds: ["likes"] });
  await server.publish("ann", { text: "not for a device" }, { audience: { users: ["bob"] } });
  const { id } = await server.publish("ann", { text: "liked" }, { audience: { users: ["bob"] }, kind: "like" });
  await webhook.told("the like", (all) => all.length > 0);
  assert.deepEqual(webhook.notifications.map(({ feed, newest }) => [feed, newest.id]), [["likes", id]]);
});

test("a hundred posts within the debounce are told as one, with the newest", async (t) => {
  const { webhook, server } = await away(t, { debounce_secs: 2 });
  await server.page("bob");
  await register(server, "bob", "phone");
  await server.publishMany("ann", 100);
  const [told] = await webhook.told("the posts", (all) => all.length > 0 && all);
  assert.deepEqual([told.unread, told.newest.body], [100, { text: "post 100" }]);
});

test("a reader who comes before the call is not told", async (t) => {
  const { webhook, server } = await away(t, { debounce_secs: 5 }); // a phone on a busy machine takes seconds to come
  await register(server, "bob", "ios-1");
  await server.publish("ann", { text: "hello" });
  const phone = await Phone.open(t, server, "bob", { device: "ios-1" });
  await phone.shows("the post", (items) => items.length === 1);
  await lastly(server, webhook, "eve");
  assert.deepEqual(webhook.notifications.filter(({ user }) => user === "bob"), []);
});

test("what a device has acknowledged is not unread, and what comes after it left is", async (t) => {
  const { webhook, server } = await away(t);
  await register(server, "bob", "ios-1");
  const phone = await Phone.open(t, server, "bob", { device: "ios-1" });
  await phone.subscribed();
  await server.publishMany("ann", 5);
  await phone.shows("the posts", (items) => items.length === 5);
  await phone.acknowledge();
  const sessions = async () => (await server.call("GET", "/v1/users/bob/sessions")).sessions;
  await until("they are acknowledged", async () => (await sessions())[0]?.position?.offset === 5);
  phone.close();
  await until("the session is gone", async () => (await sessions()).length === 0);
  const { id } = await server.publish("ann", { text: "after" });
  const [told] = await webhook.told("the post", (all) => all.length > 0 && all);
  assert.deepEqual([told.unread, told.newest.id], [1, id]);
});

test("a receiver that is down is told when it is up again, under the same id", async (t) => {
  const { webhook, server } = await away(t);
  await register(server, "bob", "phone");
  webhook.answer = (request, response) => response.writeHead(503, { "retry-after": "1" }).end();
  await server.publish("ann", { text: "hello" });
  await until("it was called", () => webhook.calls.length > 0);
  await webhook.down();
  webhook.answer = (request, response) => response.writeHead(200).end("ok");
  const before = webhook.calls.length;
  await webhook.up();
  await until("it was called again", () => webhook.calls.length > before);
  assert.equal(new Set(webhook.calls.map(({ id }) => id)).size, 1);
});

test("a device that is gone is taken away", async (t) => {
  const { webhook, server } = await away(t);
  await register(server, "bob", "old");
  await register(server, "bob", "new");
  webhook.answer = (request, response) => response.end(JSON.stringify({ gone: [{ user: "bob", device: "old" }] }));
  await server.publish("ann", { text: "hello" });
  const devices = async () => (await server.call("GET", "/v1/users/bob/devices")).devices.map(({ device }) => device);
  await until("one is left", async () => (await devices()).join() === "new");
  webhook.answer = (request, response) => response.writeHead(410).end();
  await server.publish("ann", { text: "again" });
  await until("none is left", async () => (await devices()).length === 0);
});

test("what the receiver refuses every time is on the list of the dead, and is tried again when asked for", async (t) => {
  const { webhook, server } = await away(t, { tries: 2 });
  await register(server, "bob", "phone");
  webhook.answer = (request, response) => response.writeHead(422).end();
  const { id } = await server.publish("ann", { text: "hello" });
  const dead = async () => (await server.call("GET", "/v1/push/dead")).notices;
  const [notice] = await until("it is given up", async () => ((await dead()).length > 0 ? dead() : null));
  assert.deepEqual([notice.user, notice.item_id, notice.tries, notice.error], ["bob", id, 2, "the answer is 422 Unprocessable Entity"]);
  const before = webhook.calls.length;
  assert.equal(before, 2);
  webhook.answer = (request, response) => response.writeHead(204).end();
  assert.deepEqual(await server.call("POST", "/v1/push/dead/retry?user=bob"), { count: 1 });
  await until("it is told", () => webhook.calls.length > before);
  assert.equal(webhook.calls.at(-1).id, notice.id);
  assert.deepEqual(await dead(), []);
});

test("a thousand readers who are away are told by few calls, each once", async (t) => {
  const { webhook, server } = await away(t, { debounce_secs: 1, calls_per_sec: 1000 });
  const readers = Array.from({ length: 1000 }, (_, i) => `r${i}`);
  await server.call("POST", "/v1/follows/batch", { ops: readers.map((user) => ({ op: "follow", user, author: "star" })) });
  for (let i = 0; i < readers.length; i += 100) await Promise.all(readers.slice(i, i + 100).map((user) => register(server, user, "phone")));
  await server.drained();
  await server.publish("star", { text: "hello" });
  await webhook.told("all", (all) => new Set(all.map(({ user }) => user)).size === readers.length);
  assert.equal(webhook.notifications.length, readers.length);
  assert.ok(webhook.calls.length <= 30, `${webhook.calls.length} calls`);
});
