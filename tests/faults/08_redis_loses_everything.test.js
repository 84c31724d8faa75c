// Fault 8: FLUSHALL, and eviction under maxmemory. A new epoch, a reset, everything rebuilt from the Archive; never
// "nothing missed".

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster(), decides: ["I9", "I16"] };

judged("i9_i16_redis_is_flushed_under_load", options, async ({ load, fault, home }) => {
  for (let i = 0; i < 3; i += 1) {
    await load.flows(40);
    await fault("flushall", "redis", () => home.redis.cli("flushall"));
  }
  await load.flows(40);
});

judged("i9_i16_redis_evicts_under_load", options, async ({ load, fault, home, random }) => {
  for (let i = 0; i < 4; i += 1) {
    await load.flows(30);
    // What an eviction does, at once and for keys of any kind.
    const keys = (await home.redis.cli("--scan")).split("\n").filter(Boolean);
    const evicted = keys.filter(() => random.chance(20));
    await fault(`evict ${evicted.length} of ${keys.length}`, "redis", () => evicted.length && home.redis.cli("unlink", ...evicted));
  }
  await load.flows(30);
});
