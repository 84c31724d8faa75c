import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";

const SHIELDS = [
  ["a mute", "/v1/users/ann/muted/bob"],
  ["a hide", "/v1/users/bob/hidden/ann"],
  ["a block", "/v1/users/ann/blocked/bob"],
  ["being blocked", "/v1/users/bob/blocked/ann"],
];

for (const name of ["push", "pull"]) {
  for (const [what, path] of SHIELDS) {
    test(`${what} takes the items of a ${name} author away, live, and its end brings the newest back`, async (t) => {
      const server = await Home.start(t);
      await server.call("PUT", "/v1/authors/bob", { class: name });
      await server.follow("ann", "bob");
      await server.follow("ann", "cyd");
      const phone = await Phone.open(t, server, "ann");
      await phone.subscribed();
      await server.publish("bob", { text: "before" });
      const { id: kept } = await server.publish("cyd", { text: "another's" });
      await phone.shows("both", (items) => items.length === 2);

      await server.call("PUT", path);
      await phone.shows("the other's alone", (items) => items.length === 1 && items[0].id === kept);
      await server.publish("bob", { text: "meanwhile" });
      await phone.agrees();
      assert.equal(phone.feed.items().length, 1);

      await server.call("DELETE", path);
      await phone.shows("all three", (items) => items.length === 3);
      await server.publish("bob", { text: "after" });
      await phone.shows("live again", ([newest]) => newest.body.text === "after");
      await phone.agrees();
      assert.equal(phone.reloads, 1, "nothing was loaded again");
    });
  }
}
