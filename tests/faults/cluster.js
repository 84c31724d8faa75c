// What faults are tested on. What is repaired after a while is repaired soon; a follow brings few items, so that the
// rule for the others is at work too.

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

[gateway]
reread_interval_secs = 3
ping_interval_secs = 5
pong_within_secs = 5
drain_ms = 300

[timeline]
sweep_every_ms = 500
overdue_ms = 2000
retry_max_ms = 1000

${Object.entries(FEEDS).map(([name, kinds]) => `[feeds.${name}]\nkinds = ${JSON.stringify(kinds)}\n`).join("")}`;

/** For `judged`: two gateways and two workers; `options`: those of Cluster.start. */
export const cluster = (options) => (t) => Cluster.start(t, { config: CONFIG, ...options });
