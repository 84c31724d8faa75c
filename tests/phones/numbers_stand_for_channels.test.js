// Over Protobuf a subscription that offers numbers gets one only if its SDK is known to read it there: the SDK of
// JavaScript drops every push that has a number. Over JSON every subscription that offers it gets one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { codec } from "../actors/codec.js";
import { Device } from "../actors/device.js";
import { Server } from "../actors/server.js";

const READ_BY = ["python", "rust", "swift"];
const CONFIG = '[feeds.notifications]\nkinds = ["like"]\n';

for (const name of [...READ_BY, "js", "java", "go", "dart", "an app", undefined]) {
  test(`a client called ${name} gets ${codec.name === "json" || READ_BY.includes(name) ? "numbers" : "names"} over ${codec.name}`, async (t) => {
    const server = await Server.start(t, { config: CONFIG });
    await server.follow("ann", "bob");
    const device = await Device.open(t, server);
    const { connect } = await device.ask("connect", { token: await server.token("ann"), name });
    assert.ok(connect);
    const numbers = {};
    for (const channel of ["feed", "notifications"]) {
      const { subscribe } = await device.ask("subscribe", { channel, flag: 1, data: { deliver: "items" } });
      numbers[channel] = subscribe.id;
    }
    await server.publish("bob", { text: "a post" });
    await server.publish("bob", { text: "a like" }, { kind: "like" });
    await device.until("both", () => device.lines.length === 2);
    const labels = device.lines.map(({ push: { id, channel, pub } }) => [pub.data.item.body.text, id ?? channel]);
    const expected = codec.name === "json" || READ_BY.includes(name) ? { feed: 1, notifications: numbers.notifications } : { feed: "feed", notifications: "notifications" };
    assert.deepEqual(Object.fromEntries(labels), { "a post": expected.feed, "a like": expected.notifications });
    assert.deepEqual([typeof numbers.feed, typeof numbers.notifications], Array(2).fill(typeof expected.feed === "number" ? "number" : "undefined"));
    assert.notEqual(expected.feed, expected.notifications);
  });
}
