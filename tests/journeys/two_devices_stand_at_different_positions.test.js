import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

test("i12_two_devices_of_a_user_stand_at_positions_of_their_own", async (t) => {
  const server = await Home.start(t);
  const devices = async () => {
    const { sessions } = await server.call("GET", "/v1/users/ann/sessions");
    return Object.fromEntries(sessions.map(({ device, position }) => [device, position?.offset ?? null]));
  };
  await server.follow("ann", "bob");
  const ios = await Phone.open(t, server, "ann", { device: "ios" });
  const web = await Phone.open(t, server, "ann", { device: "web" });
  await ios.subscribed();
  await web.subscribed();
  await server.publishMany("bob", 2);
  for (const phone of [ios, web]) {
    await phone.shows("two posts", (items) => items.length === 2);
    await phone.acknowledge();
  }
  const two = web.position.offset;

  await web.sleep();
  await server.publishMany("bob", 3, 3);
  await ios.shows("five posts", (items) => items.length === 5);
  await ios.acknowledge();
  await until("the tablet is gone", async () => !("web" in (await devices())), { seen: devices });
  assert.equal(web.feed.items().length, 2, "what one device reads moves no other");

  await web.wake();
  await web.shows("five posts", (items) => items.length === 5);
  const apart = async () => {
    const { ios: first, web: second } = await devices();
    return first === two + 3 && second === two;
  };
  await until("each has its own acknowledged position", apart, { seen: devices });
  assert.equal(web.pushes, 5);

  await web.acknowledge();
  await until("both have acknowledged all", async () => (await devices()).web === two + 3, { seen: devices });
  await ios.agrees();
  await web.agrees();
});
