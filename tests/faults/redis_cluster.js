// Fault 36: a Redis Cluster loses a master, or moves slots, under load. Every process goes on by itself.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

/** The options of each test of fault 36, as `judged` takes them. */
export const options = { start: cluster({ redis: "cluster" }), decides: ["I4", "I16"] };

/** Every process is ready again, and none has ended or was restarted. */
export async function goOn({ members }) {
  const ready = () => Promise.all(members.map((member) => member.isReady()));
  await until("every process is ready", async () => (await ready()).every(Boolean), { seen: ready });
  for (const member of members) {
    assert.equal(member.ended, null, `${member.name} runs`);
    assert.equal((await fetch(`${member.url}/healthz`)).status, 200, `${member.name} lives`);
  }
}

/**
 * A test: two masters, one after the other, are killed and come back under load. `comeBack`: a method of the master, which
 * `what` words.
 */
export function mastersAreLost(sentence, what, comeBack) {
  judged(sentence, options, async ({ load, fault, home }) => {
    for (const index of [1, 0]) {
      const master = home.redis.nodes[index];
      await load.flows(40);
      await fault("kill", `redis-${index}`, () => master.kill());
      await home.redis.failed(master);
      await load.flows(20);
      await fault(what, `redis-${index}`, () => master[comeBack]());
      await home.redis.ok();
      await goOn(home);
    }
    await load.flows(40);
  });
}
