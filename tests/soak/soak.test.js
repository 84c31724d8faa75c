// A cluster under load for minutes or hours, while faults come one after another, each chosen by the seed. At the end the
// whole history is judged, every inbox is compared with the Archive, and what two processes held must be flat.
//
//     FEEDGATE_SOAK_MINUTES=120 tests/run soak        5 minutes without the variable
//
// Two hours leave a history of 3 GB. Its lines alone take 8 GB of memory while it is judged.
//
// gateway-2 and timeline-2 live through all faults of the engines and are never ended, so that what they hold can grow for
// as long as the run takes. gateway-1 and timeline-1 meet what ends, stops or cuts off a process.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

import { cluster } from "../faults/cluster.js";
import { judged } from "../faults/judged.js";

const MINUTES = Number(process.env.FEEDGATE_SOAK_MINUTES ?? 5);

/** How many items are accepted between two faults. */
const BETWEEN = [10, 60];

/** The longest that something hangs, in ms: beyond the lease of a gateway (10 s). */
const HANGS_MS = 14_000;

/** How much more a process may hold at the end than at first: caches and pools fill with use. */
const MORE = { bytes: 32 * 1024 * 1024, descriptors: 40 };

const ENGINES = ["redis", "nats", "postgres"];

/** What may happen: (home, random) → [what, to whom, how it goes and ends]. */
const FAULTS = [
  (home, random) => ended("kill", random.pick([home.gateways[0], home.workers[0]]), "kill"),
  (home, random) => ended("SIGTERM", random.pick([home.gateways[0], home.workers[0]]), "stop"),
  (home, random) => hangs(random.pick([home.gateways[0], home.workers[0]]), random.between(100, HANGS_MS)),
  (home, random) => killed(home, random.pick(ENGINES)),
  (home, random) => hangs(home[random.pick(ENGINES)], random.between(100, HANGS_MS / 2)),
  (home) => ["flushall", "redis", () => home.redis.cli("flushall")],
  (home) => ["terminate backends", "postgres", () => home.postgres.psql("postgres",
    `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${home.database}'`)],
  (home, random) => cutOff(home, random.pick(ENGINES), random.pick(["requests", "answers", "both", "cut"]), random.between(100, HANGS_MS)),
];

const nameOf = (who) => who.name ?? who.constructor.name.toLowerCase();

const ended = (what, member, how) => [what, member.name, async () => {
  await member[how]();
  await member.start();
}];

const killed = (home, engine) => ["kill", engine, async () => {
  await home[engine].kill();
  await home[engine].restart();
}];

const hangs = (who, ms) => [`hang for ${ms} ms`, nameOf(who), async () => {
  await who.pause();
  await sleep(ms);
  await who.resume();
}];

const cutOff = (home, engine, how, ms) => [`${how} for ${ms} ms`, `gateway-1 and ${engine}`, async () => {
  const proxy = home.proxies["gateway-1"][engine];
  if (how === "cut") proxy.cut();
  else proxy.stall(how);
  await sleep(ms);
  proxy.heal();
}];

/** What each process that is never ended holds now: {name, bytes, descriptors}. */
function weigh(home) {
  return Promise.all([home.gateways[1], home.workers[1]].map(async (member) => ({
    name: member.name,
    bytes: await member.memory(),
    descriptors: (await readdir(`/proc/${member.pid}/fd`)).length,
  })));
}

/** What a process held at most in the first and in the last third of the run. */
function thirds(weights, name, what) {
  const own = weights.flat().filter((weight) => weight.name === name).map((weight) => weight[what]);
  const third = Math.ceil(own.length / 3);
  return [Math.max(...own.slice(0, third)), Math.max(...own.slice(-third))];
}

const options = { start: cluster({ through: ["gateway-1"] }), decides: ["I4", "I6", "I9", "I16", "I17"] };

judged(`i1_to_i17_hold_through_${MINUTES}_minutes_of_random_faults`, options, async ({ load, fault, home, random, t }) => {
  const until = performance.now() + MINUTES * 60_000;
  const [counts, weights] = [{}, []];
  while (performance.now() < until) {
    await load.flows(random.between(...BETWEEN));
    weights.push(await weigh(home));
    const [what, who, inject] = random.pick(FAULTS)(home, random);
    await fault(what, who, inject);
    const kind = `${what.replace(/ for .*/, "")} ${who}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  await load.flows(40);
  weights.push(await weigh(home));
  t.diagnostic(`${weights.length - 1} faults: ${Object.entries(counts).map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
  for (const { name } of weights[0]) {
    for (const [what, more] of Object.entries(MORE)) {
      const [first, last] = thirds(weights, name, what);
      t.diagnostic(`${name}: at most ${first} ${what} in the first third, ${last} in the last`);
      assert.ok(last <= first + more, `${name} holds more and more: ${first} ${what} at first, ${last} at last`);
    }
  }
});
