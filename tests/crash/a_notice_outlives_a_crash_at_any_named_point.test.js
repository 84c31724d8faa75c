// The server is killed at each point that the notice of a post passes: after it was noted, and before its step is taken;
// after it was taken to be sent; after the call, before that is stored. Each time the reader is told of what was posted or
// addressed, and the receiver can tell a repeated call by its id.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { Webhook, register } from "../actors/webhook.js";

const SOURCE = new URL("../../common/src/failpoint.rs", import.meta.url);
const NAMES = [...readFileSync(SOURCE, "utf8").matchAll(/"(push-[a-z]+)"/g)].map(([, name]) => name);

const POINTS = [...NAMES, "step-logged", "news-taken", "event-finished"];

test("there is such a point before and after each store", () => assert.deepEqual(NAMES.sort(), ["push-called", "push-noted", "push-taken"]));

for (const name of POINTS) {
  for (const [what, more] of [["posted", {}], ["addressed", { audience: { users: ["bob"] } }]]) {
    if ((name === "step-logged" && what === "addressed") || (name === "news-taken" && what === "posted")) continue;
    test(`killed at ${name}, a reader is told of what was ${what}`, async (t) => {
      const webhook = await Webhook.start(t);
      const server = await Server.start(t, { config: webhook.config({ timeout_secs: 1 }) });
      await server.follow("bob", "ann");
      await server.page("bob");
      await register(server, "bob", "phone");
      await server.drained();
      await server.stop();
      await server.start({ failpoint: name });
      await webhook.open(server);

      await server.publish("ann", { text: "hello" }, { id: "7", ...more }).catch(() => undefined);
      await until("the server has died", () => server.ended);
      assert.equal(server.ended.signal, "SIGKILL", server.log());
      await server.start();
      await server.drained();
      await webhook.told("the post", (all) => all.length > (name === "push-called" ? 1 : 0));

      const ids = new Set(webhook.notifications.map(({ id }) => id));
      assert.deepEqual(webhook.notifications.map(({ newest }) => newest.id), webhook.notifications.map(() => "7"));
      assert.equal(ids.size, 1, "a repeated call has the id of the one before");
      assert.equal((await server.feed("bob")).length, 1);
    });
  }
}
