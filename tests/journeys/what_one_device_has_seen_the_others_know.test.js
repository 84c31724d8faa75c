import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const NOTIFICATIONS = '[feeds.notifications]\nkinds = ["like"]\n';

const count = (wanted) => (items) => items.length === wanted;

/** Ann's phone and tablet, which both want to know how much is unread. */
async function devices(t, server, options) {
  const open = (device) => Phone.open(t, server, "ann", { device, unread: true, ...options });
  const [phone, tablet] = [await open("phone"), await open("tablet")];
  await phone.subscribed();
  await tablet.subscribed();
  return { phone, tablet };
}

const pageUnread = async (server, name = "feed") => (await server.page("ann", { name, limit: 1 })).unread;

test("what the phone has seen is no longer unread on the tablet, at once and after it was away", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const { phone, tablet } = await devices(t, server);
  await server.publishMany("bob", 3);
  await phone.shows("three posts", count(3));
  await tablet.shows("three posts", count(3));
  assert.equal(await pageUnread(server), 3);

  assert.equal((await phone.see()).unread, 0);
  await tablet.waitFor("the tablet knows", () => tablet.seen !== null);
  assert.deepEqual([tablet.seen, tablet.unread], [phone.position, 0]);

  await tablet.sleep();
  await server.publishMany("bob", 2, 4);
  await phone.shows("five posts", count(5));
  await server.drained();
  await tablet.wake();
  await tablet.waitFor("two are unread", () => tablet.unread === 2);
  assert.equal(tablet.recovered, true, "to be told did not move the position of the SDK");
  await tablet.shows("five posts", count(5));
  assert.equal(await pageUnread(server), 2);

  const { id } = phone.feed.items()[0];
  await server.call("DELETE", `/v1/items/${id}`);
  await tablet.shows("four posts", count(4));
  assert.equal((await tablet.client.rpc("seen", { channel: "feed" })).data.unread, 1);

  await tablet.see();
  await phone.waitFor("the phone knows", () => phone.seen?.offset === tablet.position.offset);
  assert.equal(phone.unread, 0);
  await server.kill();
  await server.start();
  await phone.subscribed();
  await server.publish("bob", { text: "after" });
  await tablet.shows("what came after", ([first]) => first.body.text === "after");
  assert.equal(await pageUnread(server), 1, "what was seen outlives the server");
  for (const device of [phone, tablet]) await device.agrees();
  assert.deepEqual([phone.reloads, tablet.reloads], [1, 1], "nothing was loaded again");
});

test("a badge that is notified knows how much is unread, and each feed has its own", async (t) => {
  const server = await Home.start(t, { config: NOTIFICATIONS });
  await server.follow("ann", "bob");
  const { phone, tablet } = await devices(t, server, { deliver: "notify" });
  const likes = await Phone.open(t, server, "ann", {
    channel: "notifications",
    over: phone,
    deliver: "notify",
    unread: true,
  });
  await likes.subscribed();
  for (let n = 1; n <= 4; n += 1) await server.publish("bob", { text: `post ${n}` });
  await server.publish("bob", { text: "a like" }, { kind: "like" });
  for (const device of [phone, tablet]) await device.waitFor("four are unread", () => device.unread === 4);
  await likes.waitFor("one is unread", () => likes.unread === 1);

  await phone.shows("four posts", count(4));
  const token = await server.token("ann");
  const said = { feed: "feed", position: phone.position };
  const { unread } = await server.call("PUT", "/v1/users/ann/seen", said, { token });
  assert.equal(unread, 0);
  for (const device of [phone, tablet]) await device.waitFor("nothing is unread", () => device.unread === 0);
  assert.deepEqual([await pageUnread(server), await pageUnread(server, "notifications")], [0, 1]);

  await server.publish("bob", { text: "post 5" });
  for (const device of [phone, tablet]) await device.waitFor("one is unread", () => device.unread === 1);
  const back = await server.request("PUT", "/v1/users/ann/seen", { position: { ...phone.position, offset: 1 } }, { token });
  assert.deepEqual([back.status, back.body.unread], [200, 1], "what was seen stays seen");
  const ahead = { position: { ...phone.position, offset: 1000 } };
  const refused = await server.request("PUT", "/v1/users/ann/seen", ahead, { token });
  assert.equal(refused.status, 422);
  assert.match(refused.body.detail, /offset 1000 is beyond the head/);
});
