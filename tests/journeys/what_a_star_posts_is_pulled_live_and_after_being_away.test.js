import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const classify = (server, author, name) => server.call("PUT", `/v1/authors/${author}`, { class: name });

for (const deliver of ["items", "notify"]) {
  test(`a phone gets what it pulls live, with what is pushed, and after being away, in ${deliver} mode`, async (t) => {
    const server = await Home.start(t);
    await classify(server, "star", "pull");
    await server.follow("ann", "star");
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, server, "ann", { deliver });
    await phone.subscribed();
    for (let round = 1; round <= 5; round++) {
      await Promise.all([server.publish("star", { round }), server.publish("bob", { round })]);
      await phone.shows("both posts", (items) => items.length === 2 * round);
    }
    const [first] = phone.feed.items().filter((item) => item.author === "star");
    await server.call("PATCH", `/v1/items/${first.id}`, { body: { text: "edited" } });
    await phone.shows("the edit", (items) => items.some(({ id, body }) => id === first.id && body.text === "edited"));
    await server.call("DELETE", `/v1/items/${first.id}`);
    await phone.shows("the delete", (items) => items.every(({ id }) => id !== first.id));

    await phone.sleep();
    await server.publishMany("star", 300);
    await server.publishMany("bob", 5);
    await server.drained();
    await phone.wake();
    await phone.shows("what it missed", (items) => items.length === 9 + 305);
    assert.equal(phone.recovered, true);
    await server.publish("star", { text: "live again" });
    await phone.shows("the next post", ([newest]) => newest.body.text === "live again");
    await phone.agrees();
    assert.equal(phone.reloads, 1, "nothing was loaded again");
  });
}

test("i13_an_author_who_becomes_a_star_and_is_none_any_more_is_followed_without_a_hole", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann");
  await phone.subscribed();
  const posted = [];
  for (const name of ["push", "pull", "push", "pull", "auto"]) {
    await classify(server, "bob", name);
    for (let n = 0; n < 3; n++) posted.unshift((await server.publish("bob", { name, n })).id);
  }
  await phone.shows("every post", (items) => items.length === posted.length);
  assert.deepEqual(phone.feed.items().map(({ id }) => id), posted);
  await phone.agrees();
});

test("everyone gets what an author posts whom everyone follows, and who unfollows does not", async (t) => {
  const server = await Home.start(t);
  await classify(server, "news", "everyone");
  await server.unfollow("eve", "news");
  const phones = await Promise.all(["ann", "joe", "eve"].map((user) => Phone.open(t, server, user)));
  await Promise.all(phones.map((phone) => phone.subscribed()));
  const { id } = await server.publish("news", { text: "for everyone" });
  const [ann, joe, eve] = phones;
  await Promise.all([ann, joe].map((phone) => phone.shows("the news", ([item]) => item?.id === id)));
  await eve.agrees();
  assert.deepEqual(eve.feed.items(), []);
});
