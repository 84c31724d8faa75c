// The cluster on which faults are tested. It has the shipped settings, except for two sizes. A follow brings few items, and
// few followers make an author one who is pulled, so that a small load meets every rule.

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
