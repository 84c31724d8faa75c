// Fault 12: PostgreSQL is killed, hangs, and its backends are cut off under load. A write is answered with 503 or not at
// all, never accepted in vain; a retry after a reply that was lost gets the same answer (13).

import { away, cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster(), decides: ["I4", "I6"], probed: true };

judged("i6_postgresql_is_killed_and_hangs_under_load", options, async ({ load, fault, probe, home }) => {
  for (const way of ["kill", "pause", "kill"]) {
    await load.flows(30);
    await fault(way, "postgresql", () => away(home.postgres, way));
    await probe.recovers(`postgresql (${way})`);
  }
  await load.flows(40);
});

judged("i6_backends_of_postgresql_are_terminated_under_load", options, async ({ load, fault, probe, home }) => {
  const terminate = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${home.database}'`;
  for (let i = 0; i < 6; i += 1) {
    await load.flows(15);
    await fault("terminate backends", "postgresql", () => home.postgres.psql("postgres", terminate));
  }
  await probe.recovers("postgresql (backends terminated)");
  await load.flows(30);
});
