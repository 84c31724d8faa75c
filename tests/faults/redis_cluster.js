// Fault 36: a Redis Cluster loses a master, or moves slots, under load. Every process goes on by itself.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";

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
