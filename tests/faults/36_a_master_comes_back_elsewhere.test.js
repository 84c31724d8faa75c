// Fault 36: a master of a Redis Cluster is killed and comes back at another address, under load.

import { judged } from "./judged.js";
import { goOn, options } from "./redis_cluster.js";

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
