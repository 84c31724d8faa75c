import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";

for (const redis of ["single", "cluster"]) {
  test(`a post at one gateway reaches the phones at both, live and once (redis: ${redis})`, async (t) => {
    const cluster = await Cluster.start(t, { redis });
    const readers = ["ann", "dan", "eve", "fay", "gus", "hal"];
    for (const reader of readers) await cluster.follow(reader, "bob");
    const phones = await Promise.all(readers.map((reader, i) => Phone.open(t, cluster.gateways[i % 2], reader)));
    for (const phone of phones) await phone.subscribed();

    for (const gateway of cluster.gateways) await gateway.publish("bob", { text: gateway.name });
    for (const phone of phones) {
      await phone.shows("both posts", (items) => items.length === 2);
      assert.deepEqual([phone.pushes, phone.reloads], [2, 1]);
      await phone.agrees();
    }
  });
}

test("a phone that moves to another gateway goes on from its position", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  await cluster.follow("ann", "bob");
  const phone = await Phone.open(t, one, "ann", { device: "ios-1" });
  await phone.subscribed();
  await cluster.publishMany("bob", 3);
  await phone.shows("three posts", (items) => items.length === 3);

  await phone.sleep();
  await cluster.publishMany("bob", 300, 4);
  phone.server = two;
  await phone.wake();
  await phone.shows("every post", (items) => items.length === 303);
  assert.deepEqual([phone.recovered, phone.pushes, phone.reloads], [true, 303, 1]);
  await phone.agrees();
});

test("a phone whose gateway is killed goes on at another, without a reload", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  await cluster.follow("ann", "bob");
  const phone = await Phone.open(t, one, "ann", { device: "ios-1" });
  await phone.subscribed();
  phone.server = two;
  await one.kill();
  await two.publishMany("bob", 20);
  await phone.shows("every post", (items) => items.length === 20);
  assert.deepEqual([phone.pushes, phone.reloads], [20, 1]);
});
