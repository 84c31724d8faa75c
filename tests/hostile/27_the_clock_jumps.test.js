// Fault 27: the wall clock jumps an hour ahead, an hour back, and again and again over the same second. Changes
// are delivered in their order, no two items get one id, and no device is cut off. A token is good only as long as its
// own clock says.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Clock } from "../actors/clock.js";
import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { forge, hmac } from "./tokens.js";

const HOUR = 3_600_000;
const EACH = 20;

/** A server whose clock can be moved, with a phone of ann, who follows bob. */
async function start(t) {
  const clock = await Clock.make(t);
  const server = await Server.start(t, { under: clock.under });
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann", { device: "phone" });
  await phone.subscribed();
  const posted = [];
  const post = async () => {
    for (let n = 0; n < EACH; n += 1) posted.push(await server.publish("bob", { text: `post ${posted.length}` }));
  };
  return { clock, server, phone, posted, post };
}

/** The log has every post once, in the order in which they were accepted; the feed has each of them. */
async function isWhole({ server, phone, posted }) {
  await phone.shows("every post", (items) => items.length === posted.length);
  await phone.agrees();
  const ids = posted.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "no id was given twice");
  const changes = await server.changes("ann");
  assert.deepEqual(changes.filter(({ op }) => op === "add").map(({ item }) => item.id), ids);
  assert.deepEqual(changes.map(({ offset }) => offset), changes.map((_, i) => i + 1));
  const shown = (await server.feed("ann")).map(({ rank, id }) => [rank, BigInt(id)]);
  const sorted = [...shown].sort(([rankA, a], [rankB, b]) => rankB - rankA || (a < b ? 1 : -1));
  assert.deepEqual(shown, sorted, "the feed is in its own order");
  assert.equal(shown.length, ids.length);
}

test("i2_jumps_of_an_hour_change_no_order_and_cut_nobody_off", async (t) => {
  const world = await start(t);
  for (const shift of [0, HOUR, 0, -HOUR, HOUR, 0]) {
    await world.clock.shift(shift);
    await world.post();
    const { published_at } = world.posted.at(-1);
    assert.ok(Math.abs(published_at - shift - Date.now()) < HOUR / 2, `the clock has been moved: ${published_at}`);
  }
  await isWhole(world);
  assert.deepEqual([world.phone.connects, world.phone.reloads], [1, 1]);
});

test("i2_a_second_that_comes_again_and_again_gives_every_item_an_id_of_its_own", async (t) => {
  const world = await start(t);
  const begun = Date.now();
  for (let round = 0; round < 10; round += 1) {
    await world.clock.shift(begun - Date.now());
    await world.post();
  }
  await isWhole(world);
});

test("i2_i16_a_server_that_starts_again_an_hour_earlier_goes_on_where_it_was", async (t) => {
  const world = await start(t);
  await world.clock.shift(HOUR);
  await world.post();
  await world.phone.shows("the posts", (items) => items.length === EACH);
  const before = world.phone.position;
  await world.server.kill();
  await world.clock.shift(0);
  await world.server.start();
  await world.post();
  await isWhole(world);
  assert.equal(world.phone.position.epoch, before.epoch);
  assert.deepEqual([world.phone.reloads, world.phone.repeated], [1, 0], "it was recovered");
});

test("a token counts by the server's clock, with a minute for one that begins and none for one that ends", async (t) => {
  const { clock, server } = await start(t);
  const key = (await readFile(join(server.data, "secrets", "token_key"), "utf8")).trim();
  const now = Math.floor(Date.now() / 1000);
  const token = (claims) => forge({ claims: { sub: "ann", ...claims }, sign: hmac(key) });
  const status = async (claims) => (await server.request("GET", "/v1/users/ann/feed", undefined, { token: token(claims) })).status;
  const hour = HOUR / 1000;
  // Between what must be taken and what must not lie seconds that this test may need.
  for (const [shift, at] of [[0, now], [HOUR, now + hour], [-HOUR, now - hour]]) {
    await clock.shift(shift);
    assert.equal(await status({ exp: at + 300 }), 200);
    assert.equal(await status({ exp: at }), 401, "no leeway at the end");
    assert.equal(await status({ exp: at + 300, nbf: at + 55 }), 200, "a minute at the beginning");
    assert.equal(await status({ exp: at + 900, nbf: at + 600 }), 401, "and no more");
  }
});
