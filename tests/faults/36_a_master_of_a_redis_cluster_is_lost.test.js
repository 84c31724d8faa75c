// Fault 36: a master of a Redis Cluster is killed and comes back at its address, or gives slots away, under load.

import { judged } from "./judged.js";
import { goOn, mastersAreLost, options } from "./redis_cluster.js";

mastersAreLost("i4_i16_a_master_of_a_redis_cluster_is_killed_and_comes_back", "restart", "restart");

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
