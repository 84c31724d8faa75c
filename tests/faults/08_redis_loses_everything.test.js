// Fault 8: FLUSHALL, and eviction under maxmemory. A new epoch, a reset, everything rebuilt from the Archive; never
// "nothing missed".

import { until } from "../actors/until.js";
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

judged("i9_i16_redis_evicts_under_load", options, async ({ load, fault, home }) => {
  const info = async (section, name) => Number(new RegExp(`^${name}:(\\d+)$`, "m").exec(await home.redis.cli("info", section))[1]);
  const memory = (name) => info("memory", name);
  const evicted = () => info("stats", "evicted_keys");
  const set = (name, value) => home.redis.cli("config", "set", name, String(value));
  await set("maxmemory-policy", "allkeys-random");
  for (let i = 0; i < 3; i += 1) {
    await load.flows(30);
    const most = Math.round((await memory("used_memory")) - (await memory("used_memory_dataset")) / 3);
    const before = await evicted();
    await fault(`maxmemory ${most}`, "redis", () => set("maxmemory", most));
    await until("keys were evicted", async () => (await evicted()) > before, { withinSecs: 30 });
    await set("maxmemory", 0);
  }
  await load.flows(30);
});
