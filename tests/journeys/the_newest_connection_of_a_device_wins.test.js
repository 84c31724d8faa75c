import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

test("i17_the_newest_connection_of_a_device_wins_and_the_older_sdk_stops_with_4500", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const older = await Phone.open(t, server, "ann", { device: "ios-1" });
  await older.subscribed();
  const newer = await Phone.open(t, server, "ann", { device: "ios-1" });
  await newer.subscribed();

  await older.waitFor("the older stops", () => older.stopped);
  assert.equal(older.stopped.code, 4500);
  assert.equal(older.client.state, "disconnected", "its SDK does not come back by itself");

  await server.publish("bob", { text: "to the newer" });
  await newer.shows("the post", (items) => items.length === 1);
  assert.equal(older.feed.items().length, 0);
  assert.equal(newer.connects, 1, "the two do not chase each other");
  const { sessions } = await server.call("GET", "/v1/users/ann/sessions");
  assert.deepEqual(sessions.map(({ device }) => device), ["ios-1"]);
  await newer.agrees();
});

test("a device that is kicked stays away", async (t) => {
  const server = await Home.start(t);
  const phone = await Phone.open(t, server, "ann", { device: "ios-1" });
  await phone.subscribed();
  await server.call("DELETE", "/v1/users/ann/sessions/ios-1");
  await phone.waitFor("the kick", () => phone.stopped);
  assert.equal(phone.stopped.code, 3503);
});
