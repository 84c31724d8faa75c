// Fault 12: PostgreSQL is killed, and its backends are cut off under load. A write is answered with 503 or not at
// all, never accepted in vain; a retry after a reply that was lost gets the same answer (13).

import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster(), decides: ["I4", "I6"] };

judged("i6_postgresql_is_killed_under_load", options, async ({ load, fault, home }) => {
  for (let i = 0; i < 2; i += 1) {
    await load.flows(40);
    await fault("kill", "postgresql", () => home.postgres.kill());
    await home.postgres.restart();
  }
  await load.flows(40);
});

judged("i6_backends_of_postgresql_are_terminated_under_load", options, async ({ load, fault, home }) => {
  const terminate = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${home.database}'`;
  for (let i = 0; i < 6; i += 1) {
    await load.flows(15);
    await fault("terminate backends", "postgresql", () => home.postgres.psql("postgres", terminate));
  }
  await load.flows(30);
});
