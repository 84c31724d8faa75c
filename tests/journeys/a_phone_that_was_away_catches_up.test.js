import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone, WAYS } from "../actors/phone.js";

/** A phone that knew one post and is away for `missed` more. */
async function away(t, missed, options) {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann", options);
  await phone.subscribed();
  await server.publish("bob", { text: "before" });
  await phone.shows("the first post", (items) => items.length === 1);

  await phone.sleep();
  await server.publishMany("bob", missed);
  await server.drained();
  const pushesBefore = phone.pushes;
  await phone.wake();
  return { server, phone, pushed: () => phone.pushes - pushesBefore };
}

for (const missed of [5, 800]) {
  for (const way of WAYS) {
    test(`a phone that was away for ${missed} posts gets exactly those (${way})`, async (t) => {
      const { phone, pushed } = await away(t, missed, { way });
      await phone.shows("every post", (items) => items.length === missed + 1);

      assert.equal(phone.recovered, true);
      assert.equal(pushed(), missed);
      assert.equal(phone.reloads, 1, "nothing was loaded again");
      await phone.agrees();
    });
  }
}

for (const way of WAYS) {
  test(`i9_a_phone_that_was_away_for_5000_posts_past_the_cap_is_reset_and_goes_on (${way})`, async (t) => {
    const { server, phone, pushed } = await away(t, 5000, { way });
    await phone.waitFor("page one is loaded again", () => phone.reloads === 2);

    assert.equal(pushed(), 0, "a reset is never a partial recovery");
    await phone.agrees();
    assert.equal(phone.feed.items().length, 5001, "scrolling up shows every post");

    const { id } = await server.publish("bob", { text: "after" });
    await phone.shows("the next post", ([first]) => first.id === id);
    await phone.agrees();
    assert.equal(phone.reloads, 2, "live again, without another reset");
  });
}

for (const missed of [800, 5000]) {
  for (const fetchBy of ["history", "changes"]) {
    test(`a notified phone that was away for ${missed} posts fetches by ${fetchBy} what it missed`, async (t) => {
      const { phone } = await away(t, missed, { deliver: "notify", fetchBy });
      await phone.agrees();
      assert.equal(phone.feed.items().length, missed + 1);
    });
  }
}
