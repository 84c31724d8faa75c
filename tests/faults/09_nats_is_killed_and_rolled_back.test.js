// Fault 9: NATS hangs, or is killed and comes back with all it had, with what it had some time ago, or with nothing. The
// Archive knows what is outstanding.

import { cp, rm } from "node:fs/promises";
import { join } from "node:path";

import { away, cluster } from "./cluster.js";
import { judged } from "./judged.js";

const options = { start: cluster(), decides: ["I4", "I6"], probed: true };

judged("i4_i6_nats_is_killed_and_hangs_under_load", options, async ({ load, fault, probe, home }) => {
  for (const way of ["kill", "pause", "kill"]) {
    await load.flows(30);
    await fault(way, "nats", () => away(home.nats, way));
    await probe.recovers(`nats (${way})`);
  }
  await load.flows(30);
});

judged("i4_i6_nats_is_rolled_back_and_wiped_under_load", options, async ({ load, fault, probe, home }) => {
  const names = ["jetstream", "jetstream.then"];
  const [now, then] = names.map((name) => join(home.nats.directory, name));
  await load.flows(30);
  await home.nats.copy(...names);
  await load.flows(30);
  await fault("roll back", "nats", () => home.nats.kill());
  await rm(now, { recursive: true });
  await cp(then, now, { recursive: true });
  await home.nats.restart();
  await probe.recovers("nats (rolled back)");
  await load.flows(30);
  await fault("wipe", "nats", () => home.nats.kill());
  await rm(now, { recursive: true });
  await home.nats.restart();
  await probe.recovers("nats (wiped)");
  await load.flows(30);
});
