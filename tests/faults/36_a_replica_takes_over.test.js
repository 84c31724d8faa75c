// Fault 36: a master of a Redis Cluster hangs until its replica has replaced it, and goes on; then the replica is killed.

import { judged } from "./judged.js";
import { goOn, options } from "./redis_cluster.js";

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
