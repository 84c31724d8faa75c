// Fault 36: a master of a Redis Cluster is killed and comes back, at its address or at another, is replaced by its replica,
// hangs until the others have replaced it and goes on, or gives slots away, all of it under load. Every process goes on by
// itself.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster({ redis: "cluster" }), decides: ["I4", "I16"] };

/** Every process is ready again, and none has ended or was restarted. */
async function goOn({ members }) {
  const ready = () => Promise.all(members.map((member) => member.isReady()));
  await until("every process is ready", async () => (await ready()).every(Boolean), { seen: ready });
  for (const member of members) {
    assert.equal(member.ended, null, `${member.name} runs`);
    assert.equal((await fetch(`${member.url}/healthz`)).status, 200, `${member.name} lives`);
  }
}

judged("i4_i16_a_master_of_a_redis_cluster_is_killed_and_comes_back", options, async ({ load, fault, home }) => {
  for (const index of [1, 0]) {
    const master = home.redis.nodes[index];
    await load.flows(40);
    await fault("kill", `redis-${index}`, () => master.kill());
    await home.redis.failed(master);
    await load.flows(20);
    await fault("restart", `redis-${index}`, () => master.restart());
    await home.redis.ok();
    await goOn(home);
  }
  await load.flows(40);
});

judged("i4_i16_a_master_of_a_redis_cluster_comes_back_at_another_address", options, async ({ load, fault, home }) => {
  for (const index of [1, 0]) {
    const master = home.redis.nodes[index];
    await load.flows(30);
    await fault("kill", `redis-${index}`, () => master.kill());
    await home.redis.failed(master);
    await load.flows(20);
    await fault("start elsewhere", `redis-${index}`, () => master.move());
    await home.redis.ok();
    await goOn(home);
  }
  await load.flows(40);
});

judged("i4_i16_a_master_of_a_redis_cluster_is_replaced_by_its_replica_and_back", options, async ({ load, fault, home, t }) => {
  const master = home.redis.nodes[1];
  const replica = await home.redis.replica(t, master);
  await load.flows(30);
  await fault("pause", "redis-1", () => master.pause());
  await home.redis.failed(master);
  await goOn(home);
  await load.flows(30);
  await fault("resume", "redis-1", () => master.resume());
  await home.redis.ok();
  await load.flows(30);
  await fault("kill", "the replica that has taken over", () => replica.kill());
  await goOn(home);
  await load.flows(30);
});

judged("i4_i16_slots_of_a_redis_cluster_move_under_load", options, async ({ load, fault, home }) => {
  const [from, to] = home.redis.nodes;
  const tags = [...Array(16).keys()].flatMap((n) => ["b", "s"].map((kind) => `{${kind}${String(n).padStart(3, "0")}}`));
  const slots = await Promise.all(tags.map(async (tag) => Number(await from.cli("cluster", "keyslot", tag))));
  await load.flows(30);
  for (const slot of new Set(slots.filter((each) => each < 5461).slice(0, 12))) {
    await fault("move slot", String(slot), () => home.redis.move(slot, from, to));
  }
  await goOn(home);
  await load.flows(30);
});
