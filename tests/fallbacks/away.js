// A phone that goes away for a while, misses posts, and has them all when it is back.

import assert from "node:assert/strict";

const MISSED = 300;

/** Puts the phone to sleep, publishes 300 posts of bob, and wakes it: it goes on where it was, without loading its feed anew. */
export async function missesPosts(phone, server) {
  const before = phone.feed.items().length;
  await phone.sleep();
  await server.publishMany("bob", MISSED, before + 1);
  await phone.wake();
  await phone.shows("what it missed", (items) => items.length === before + MISSED);
  assert.deepEqual([phone.recovered, phone.reloads], [true, 1]);
  await phone.agrees();
}
