// Fault 26: the disk of Redis, NATS or PostgreSQL fills up under load and is emptied again. Processes that were refused say what has no room,
// and all go on by themselves, with NATS after its server was started again, which it needs. Without the disk of Redis or
// NATS posts are taken all the while; without PostgreSQL's, which holds the truth, none is. The disk is a file system of its own in memory, so the test needs to be root, as in CI.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

/** What the engine may still write, in bytes. */
const LEFT = 64 * 1024;

const ready = async (member) => {
  const { status, body } = await member.request("GET", "/readyz");
  return `${status} ${body.detail}`;
};

const all = (members) => Promise.all(members.map(ready));

/** Every process becomes ready again, and none has ended. */
async function goOn({ members }) {
  await until("every process is ready", async () => (await all(members)).every((answer) => /^200/.test(answer)), { seen: () => all(members) });
  for (const member of members) assert.equal(member.ended, null, `${member.name} has not ended`);
}

judged("i4_i6_the_disk_of_redis_is_full_under_load", { start: cluster({ disks: { redis: "64m" } }), decides: ["I4", "I6"] }, async ({ load, fault, home }) => {
  await load.flows(30);
  await fault("fill the disk", "redis", () => home.redis.fill(LEFT));
  const says = (answer) => /^503 .*Redis: .*No space left on device/.test(answer);
  await until("every process says that Redis has no room", async () => (await all(home.members)).every(says), { seen: () => all(home.members) });
  for (const member of home.members) assert.equal((await member.request("GET", "/healthz")).status, 200, "it lives");
  await load.flows(20);
  await fault("empty the disk", "redis", () => home.redis.empty());
  await goOn(home);
  await load.flows(30);
});

judged("i4_i6_the_disk_of_nats_is_full_under_load", { start: cluster({ disks: { nats: "4g" } }), decides: ["I4", "I6"] }, async ({ load, fault, home }) => {
  await load.flows(30);
  await fault("fill the disk", "nats", () => home.nats.fill(LEFT));
  const says = (answer) => /^503 .*NATS: stream FEED_\w+ takes no jobs/.test(answer);
  await until("every gateway says that NATS takes nothing", async () => (await all(home.gateways)).every(says), { seen: () => all(home.gateways) });
  // A worker puts nothing until what the gateways could not put is overdue, after 30 s.
  await until("every worker says so too", async () => (await all(home.workers)).every(says), { seen: () => all(home.workers) });
  for (const member of home.members) assert.equal((await member.request("GET", "/healthz")).status, 200, "it lives");
  await load.flows(20);
  await fault("empty the disk and start NATS again", "nats", async () => {
    await home.nats.empty();
    await home.nats.restart();
  });
  await goOn(home);
  await load.flows(30);
});

judged("i4_i6_the_disk_of_postgresql_is_full_under_load", { start: cluster({ disks: { postgres: "256m" } }), decides: ["I4", "I6"] }, async ({ load, fault, home }) => {
  await load.flows(30);
  await fault("fill the disk", "postgresql", () => home.postgres.fill(LEFT));
  const says = (answer) => /^503 .*PostgreSQL/.test(answer);
  await until("both gateways say what is wrong with PostgreSQL", async () => (await all(home.gateways)).every(says), { seen: () => all(home.gateways) });
  // What little room is left may take a few more posts.
  const post = () => home.request("POST", "/v1/items", { author: "ann", body: { text: randomBytes(6000).toString("base64") } });
  const refused = await until("a post is refused", async () => {
    const { status, body } = await post();
    return status !== 201 && { status, detail: body.detail };
  });
  assert.equal(refused.status, 503, refused.detail);
  assert.match(refused.detail, /PostgreSQL/);
  for (const member of home.members) assert.equal((await member.request("GET", "/healthz")).status, 200, "it lives");
  await fault("empty the disk", "postgresql", () => home.postgres.empty());
  // A server that had no room for its own log has ended; its operator would start it again.
  if (home.postgres.ended) await home.postgres.restart();
  await goOn(home);
  await load.flows(30);
});
