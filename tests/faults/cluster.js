// What faults are tested on. What a sweep repairs after a while it repairs soon, but where a test is about the timings that
// are shipped; a follow brings few items, so that the
// rule for the others is at work too.

import { Cluster } from "../actors/cluster.js";

/** How many items a follow brings. */
export const BACKFILL = 20;

/** Above how many followers an author without a class is pulled: about half of the load's readers, so that it changes. */
export const PULL_ABOVE = 5;

/** The named feeds, and the kinds of each. */
export const FEEDS = { likes: ["like"] };

const base = (timings) => `
backfill = ${BACKFILL}
pull_above = ${PULL_ABOVE}

[gateway]
reread_interval_secs = 3
ping_interval_secs = 5
pong_within_secs = 5
drain_ms = 300
${timings}
${Object.entries(FEEDS).map(([name, kinds]) => `[feeds.${name}]\nkinds = ${JSON.stringify(kinds)}\n`).join("")}`;

/** What a sweep repairs is repaired soon. */
const SOON = `
[timeline]
sweep_every_ms = 500
overdue_ms = 2000
retry_max_ms = 1000
`;

/** Of everything, with such timings. */
export const CONFIG = base(SOON);

/** For `judged`: two gateways and two workers. `shipped`: workers have the timings that are shipped; `options`: those of Cluster.start. */
export const cluster = ({ shipped = false, ...options } = {}) => (t) => Cluster.start(t, { config: shipped ? base("") : CONFIG, ...options });
