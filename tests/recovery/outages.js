// How soon posts flow again after an engine was away, at the settings that are shipped: three seconds after its return what
// was accepted before is on the phones, and from then on a post is there within a second (p99).
//
// No other tests run beside these, which measure time. Each engine has a file of its own, and so a process with a cluster
// and a PostgreSQL of its own; the three leave more than half of two processors idle. A machine may be busy for other
// reasons, so each outage is tried up to TRIES times, and the limits must hold once. The mistakes
// that these tests are to catch are late every time: a work queue that redelivers after 30 s, a sweep every 5 s, a pause between tries that doubles.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Cluster } from "../actors/cluster.js";
import { Stream } from "./stream.js";

/** After the return of an engine, in ms, everything is as it was. */
const RECOVERED_MS = 3000;

/** The p99 of a post's way to a phone, in ms. */
const LATE_MS = 1000;

/** Posts are timed for so long, in ms. */
const WINDOW_MS = 3000;

const TRIES = 3;

/** An outage takes so many seconds, enough for every pause between tries to reach its longest. */
const AWAY_SECS = 12;

/** The ways in which an engine goes away and comes back, as methods of the engine. */
const WAYS = { killed: ["kill", "restart"], hanging: ["pause", "resume"] };

/** Makes one outage, and gives what it took to recover. */
async function outage(t, { cluster, stream }, engine, [go, comeBack]) {
  await cluster[engine][go]();
  await sleep(AWAY_SECS * 1000);
  await cluster[engine][comeBack]();
  const back = performance.now();
  await sleep(RECOVERED_MS);
  const { count, p50, p99 } = await stream.waits(back + RECOVERED_MS, back + RECOVERED_MS + WINDOW_MS);
  const last = Math.round(await stream.lastOf(back));
  t.diagnostic(`the last post from before came ${last} ms after the return; from ${RECOVERED_MS} ms on: p50 ${p50} ms, p99 ${p99} ms of ${count}`);
  t.diagnostic(`the slowest post of each half second from the return on, and its 201, in ms: ${stream.slowest(back)}`);
  return { last, p99 };
}

/** The tests of one engine. They share a cluster, and posts flow in it all the time. */
export function wasAway(engine) {
  // Stands for a test, so that the cluster ends with the last of these tests.
  const all = { ends: [], after: (end) => all.ends.unshift(end) };
  const home = {};

  describe(`${engine} was away`, () => {
    before(async () => {
      home.cluster = await Cluster.start(all);
      home.stream = await Stream.start(all, home.cluster);
      const now = performance.now();
      await home.stream.waits(now, now + WINDOW_MS);
    });

    after(async () => {
      await home.stream?.stop();
      for (const end of all.ends) await end();
    });

    for (const [how, way] of Object.entries(WAYS)) {
      test(`i4_posts_flow_within_three_seconds_after_${engine}_was_${how}`, async (t) => {
        const seen = [];
        for (let n = 0; n < TRIES; n += 1) {
          const { last, p99 } = await outage(t, home, engine, way);
          if (last < RECOVERED_MS && p99 < LATE_MS) return;
          seen.push({ last, p99 });
        }
        assert.fail(`three seconds after ${engine} was back posts were late, ${TRIES} times: ${JSON.stringify(seen)} (ms)`);
      });
    }
  });
}
