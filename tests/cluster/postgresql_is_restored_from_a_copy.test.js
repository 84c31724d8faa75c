// PostgreSQL is restored from an older copy, in the steps that docs/operate.md says. Numbers of users and epochs are given
// again then, so without these steps a new user would be shown what Redis holds of another one.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";

/** Stands aside while nothing runs: `cp` takes sockets along, which Node's own copy refuses. */
const copy = (from, to) => execFileSync("cp", ["-a", from, to]);

test("i5_a_copy_of_postgresql_that_is_restored_as_the_manual_says_shows_nobody_the_feed_of_another", async (t) => {
  const home = await Cluster.start(t);
  const { postgres } = home;
  await home.follow("bob", "ann");
  await home.publish("ann", { text: "for followers of ann" });
  await home.drained();
  await postgres.kill();
  copy(postgres.directory, `${postgres.directory}-copy`);
  await postgres.restart();

  // A user who comes after the copy was made, and whose number is given again later.
  await home.follow("eve", "ann");
  await home.drained();
  assert.equal((await home.feed("eve")).length, 1);
  const { position: before } = await home.page("eve");

  await home.takeBack(async () => {
    await postgres.kill();
    execFileSync("rm", ["-r", postgres.directory]);
    execFileSync("mv", [`${postgres.directory}-copy`, postgres.directory]);
    await postgres.restart();
  });

  await home.follow("joe", "carl");
  await home.drained();
  assert.deepEqual(await home.feed("joe"), []);
  assert.equal((await home.feed("bob")).length, 1, "what the copy has is there");
  const { position: after } = await home.page("joe");
  assert.ok(BigInt(after.epoch) > BigInt(before.epoch), `epoch ${after.epoch} after ${before.epoch}`);
});
