// What faults are tested on: a cluster with the settings that are shipped, but for sizes. A follow brings few items, so that
// the rule for the others is at work too, and few followers make an author one who is pulled.

import { setTimeout as sleep } from "node:timers/promises";

import { Cluster } from "../actors/cluster.js";

/** How many items a follow brings. */
export const BACKFILL = 20;

/** Above how many followers an author without a class is pulled: about half of the load's readers, so that it changes. */
export const PULL_ABOVE = 5;

/** The named feeds, and the kinds of each. */
export const FEEDS = { likes: ["like"] };

export const CONFIG = `
backfill = ${BACKFILL}
pull_above = ${PULL_ABOVE}

${Object.entries(FEEDS).map(([name, kinds]) => `[feeds.${name}]\nkinds = ${JSON.stringify(kinds)}\n`).join("")}`;

/** For `judged`: two gateways and two workers. `options`: those of Cluster.start. */
export const cluster = (options = {}) => (t) => Cluster.start(t, { config: CONFIG, ...options });

/** How an engine goes, and how it comes back. */
const WAYS = { kill: "restart", pause: "resume" };

/** The engine goes in one of WAYS, for so many seconds. */
export async function away(engine, way, secs = 2) {
  await engine[way]();
  await sleep(secs * 1000);
  await engine[WAYS[way]]();
}
