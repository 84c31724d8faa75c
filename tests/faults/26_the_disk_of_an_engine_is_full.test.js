// Fault 26: the disk of Redis fills up under load and is emptied again. Every process says what has no room, takes posts all
// the while, and goes on by itself. The disk is a file system of its own in memory, so the test needs to be root, as in CI.

import assert from "node:assert/strict";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

/** What Redis may still write. */
const LEFT = 64 * 1024;

const options = { start: cluster({ disks: { redis: "64m" } }), decides: ["I4", "I6"] };

judged("i4_i6_the_disk_of_redis_is_full_under_load", options, async ({ load, fault, home }) => {
  const ready = async (member) => {
    const { status, body } = await member.request("GET", "/readyz");
    return `${status} ${body.detail}`;
  };
  const all = () => Promise.all(home.members.map(ready));
  await load.flows(30);
  await fault("fill the disk", "redis", () => home.redis.fill(LEFT));
  const says = (answer) => /^503 .*Redis: .*No space left on device/.test(answer);
  await until("every process says that Redis has no room", async () => (await all()).every(says), { seen: all });
  for (const member of home.members) assert.equal((await member.request("GET", "/healthz")).status, 200, "it lives");
  await load.flows(20);
  await fault("empty the disk", "redis", () => home.redis.empty());
  await until("every process is ready", async () => (await all()).every((answer) => /^200/.test(answer)), { seen: all });
  for (const member of home.members) assert.equal(member.ended, null, `${member.name} has not ended`);
  await load.flows(30);
});
