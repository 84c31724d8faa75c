// Fault 7: a replica that lacks the last writes becomes the master. The product must behave as after a rollback (fault 6).

import { Redis } from "../actors/engines.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const ALL = ["gateway-1", "gateway-2", "timeline-1", "timeline-2"];

const options = { start: cluster({ through: ALL }), decides: ["I9", "I16"] };

judged("i16_a_replica_that_lacks_writes_is_promoted_under_load", options, async ({ load, fault, home, t }) => {
  const replica = await Redis.start(t, { replicaOf: home.redis });
  await load.flows(40);
  await fault("stall the replica", "redis", () => replica.pause());
  await load.flows(40);
  await fault("kill the master", "redis", () => home.redis.kill());
  await replica.resume();
  await replica.cli("replicaof", "no", "one");
  for (const { redis } of Object.values(home.proxies)) {
    redis.cut();
    redis.target = replica.port;
    redis.heal();
  }
  await load.flows(40);
});
