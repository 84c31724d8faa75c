// A test of one fault: the product under load, the fault, the rest, the judgement of the whole history, and a look at the
// store.
//
//     judged("a gateway is killed", async ({ load, fault, home }) => {
//       await load.flows(100);
//       await fault("kill", "gateway-1", () => home.gateways[0].kill());
//       …
//     });
//
// The seed is printed; FEEDGATE_SEED chooses it. The history of a run that failed stays in target/tools/histories.

import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { isSound } from "../actors/doctor.js";
import { TOOLS } from "../actors/process.js";
import { check, worded } from "../history/check.js";
import { History } from "../history/history.js";
import { someLinesOf } from "../history/lines.js";
import { Recorder } from "../history/recorder.js";
import { BACKFILL, FEEDS, PULL_ABOVE } from "./cluster.js";
import { Load } from "./load.js";
import { Random } from "./random.js";

/** `start(t)`: a home. `decides`: invariants that this history must have decided something about. */
export function judged(sentence, { start, decides = [], sizes }, body) {
  test(sentence, async (t) => {
    const seed = Number(process.env.FEEDGATE_SEED ?? Math.floor(Math.random() * 2 ** 32));
    t.diagnostic(`seed ${seed}; again with FEEDGATE_SEED=${seed}`);
    const directory = join(TOOLS, "histories");
    mkdirSync(directory, { recursive: true });
    const path = join(directory, `${sentence.replace(/[^A-Za-z0-9]+/g, "_")}.${seed}.jsonl`);
    const random = new Random(seed);
    const home = await start(t);
    const recorder = new Recorder(path, { seed, test: sentence, backfill: BACKFILL, pull_above: PULL_ABOVE, feeds: FEEDS });
    t.after(() => recorder.close());
    const load = await Load.start(t, { home, recorder, random, sizes });
    const fault = async (what, who, inject) => {
      recorder.line({ kind: "fault", what, who });
      const answer = await inject();
      recorder.line({ kind: "fault", what: `${what}: done`, who });
      return answer;
    };
    await body({ load, fault, home, random, recorder, t });
    const late = await load.settle();
    judge(t, path, decides, late);
    await isSound(home);
    rmSync(path);
  });
}

const SAMPLES = 3;

/** The first violations of each invariant. */
function samples(violations) {
  const counts = {};
  return violations.filter(({ invariant }) => (counts[invariant] = (counts[invariant] ?? 0) + 1) <= SAMPLES);
}

/** Fails with violations of every invariant that is broken, worded, and where the history lies. */
function judge(t, path, decides, late) {
  const { violations, decided, complete } = check(History.load(path));
  t.diagnostic(`decided ${Object.entries(decided).map(([name, count]) => `${name} ${count}`).join(", ")}`);
  const found = worded(samples(violations), (numbers) => someLinesOf(path, numbers)).join("\n");
  assert.equal(violations.length, 0, `${violations.length} violations in ${path}\n${found}`);
  assert.deepEqual(late, [], `phones that did not catch up, and no violation says why: ${path}`);
  assert.ok(complete, `the history has no end: ${path}`);
  for (const name of decides) assert.ok(decided[name] > 0, `${name} had nothing to decide: ${path}`);
}
