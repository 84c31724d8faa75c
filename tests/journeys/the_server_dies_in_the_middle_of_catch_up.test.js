import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const MISSED = 800;

/** A phone asleep, 800 posts behind, and its server stopped. */
async function asleep(t, options = {}) {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann", { device: "ios-1", ...options });
  await phone.subscribed();
  await phone.sleep();
  await server.publishMany("bob", MISSED);
  await server.drained();
  return { server, phone };
}

async function hasMissedNothing(phone) {
  await phone.shows("every post", (items) => items.length === MISSED);
  assert.equal(phone.pushes, MISSED, "each came once, whichever server sent it");
  assert.equal(phone.reloads, 1, "and no page had to be loaded again");
  await phone.agrees();
}

test("i14_a_server_that_dies_between_two_batches_of_catch_up_costs_the_phone_nothing", async (t) => {
  const { server, phone } = await asleep(t);
  await server.stop();
  await server.start({ failpoint: "catch-up-batch:3" });
  phone.client.connect();

  await phone.waitFor("the server has killed itself", () => server.ended);
  assert.equal(server.ended.signal, "SIGKILL");
  assert.ok(phone.pushes < MISSED, "in the middle");

  await server.start();
  await hasMissedNothing(phone);
});

test("i14_a_server_that_dies_after_every_single_batch_costs_the_phone_nothing", async (t) => {
  const { server, phone } = await asleep(t);
  await server.stop();
  let deaths = 0;
  // A life may bring nothing: some SDKs drop what they have received once they see that the connection has ended.
  for (phone.client.connect(); phone.pushes < MISSED && deaths < 50; deaths += 1) {
    await server.start({ failpoint: "catch-up-batch:2" });
    await phone.waitFor("a death, or the end", () => server.ended || phone.pushes === MISSED);
    if (!server.ended) break;
  }
  assert.ok(deaths >= 3, `${deaths} deaths`);
  await server.stop();
  await server.start();
  await hasMissedNothing(phone);
});
