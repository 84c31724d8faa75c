// Fault 5: Redis is killed and started again, and hangs. Sockets stay open; the feed is late, and nothing is lost.

import { away, cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster(), decides: ["I4", "I9", "I16"], probed: true };

judged("i4_i9_redis_is_killed_and_hangs_under_load", options, async ({ load, fault, probe, home }) => {
  for (const way of ["kill", "pause", "kill"]) {
    await load.flows(30);
    await fault(way, "redis", () => away(home.redis, way));
    await probe.recovers(`redis (${way})`);
  }
  await load.flows(30);
});
