// Fault 36: a master of a Redis Cluster is killed and comes back at its address, or gives slots away, under load.

import { judged } from "./judged.js";
import { goOn, options } from "./redis_cluster.js";

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
