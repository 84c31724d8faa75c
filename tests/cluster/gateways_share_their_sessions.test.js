import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const sessions = async (backend) => (await backend.call("GET", "/v1/users/ann/sessions")).sessions;

test("i17_a_device_that_connects_to_another_gateway_wins_and_the_older_sdk_stops_with_4500", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  await cluster.follow("ann", "bob");
  const older = await Phone.open(t, one, "ann", { device: "ios-1" });
  await older.subscribed();
  const newer = await Phone.open(t, two, "ann", { device: "ios-1" });
  await newer.subscribed();

  await older.waitFor("the older stops", () => older.stopped);
  assert.equal(older.stopped.code, 4500);
  await cluster.publish("bob", { text: "to the newer" });
  await newer.shows("the post", (items) => items.length === 1);
  assert.deepEqual([older.feed.items().length, newer.connects], [0, 1]);
  for (const gateway of cluster.gateways) {
    assert.deepEqual((await sessions(gateway)).map(({ node }) => node.split(".")[0]), ["gateway-2"]);
  }
  await newer.agrees();
});

test("every gateway lists the sessions of all, with their nodes and positions", async (t) => {
  const cluster = await Cluster.start(t);
  await cluster.follow("ann", "bob");
  const phones = await Promise.all(cluster.gateways.map((gateway, i) => Phone.open(t, gateway, "ann", { device: `d${i + 1}` })));
  await cluster.publish("bob", { text: "one" });
  for (const phone of phones) {
    await phone.shows("the post", (items) => items.length === 1);
    await phone.acknowledge();
  }
  const { offset } = phones[0].position;
  const wants = [
    ["d1", "gateway-1", offset],
    ["d2", "gateway-2", offset],
  ];
  for (const gateway of cluster.gateways) {
    const list = async () => (await sessions(gateway)).map(({ device, node, position }) => [device, node.split(".")[0], position?.offset]);
    const both = async () => JSON.stringify((await list()).sort()) === JSON.stringify(wants);
    await until(`${gateway.name} lists both`, both, { seen: list });
  }
});

test("a device is kicked by a gateway that does not hold it, and stays away", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  const phone = await Phone.open(t, two, "ann", { device: "ios-1" });
  await phone.subscribed();
  await one.call("DELETE", "/v1/users/ann/sessions/ios-1");
  await phone.waitFor("the kick", () => phone.stopped);
  assert.equal(phone.stopped.code, 3503);
  await until("it is gone from the list", async () => (await sessions(two)).length === 0, { seen: () => sessions(two) });
});

test("the sessions of a gateway that was killed are gone within its lease", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  const phone = await Phone.open(t, two, "ann", { device: "ios-1" });
  await phone.subscribed();
  phone.close();
  await two.kill();
  await until("the list is empty", async () => (await sessions(one)).length === 0, { seen: () => sessions(one) });
});
