// The history checker: decides the invariants of ARCHITECTURE.md from a recorded run alone.
//
//     node tests/history/check.js FILE        prints each violation with the lines that show it
//
// An invariant is broken only if no order of what is uncertain could explain the history: an answer that
// never came, a follow beside a publish. What the history does not show is not decided; `decided` counts,
// for each invariant, the comparisons that could have failed.

import { fileURLToPath } from "node:url";

import { History } from "./history.js";
import * as i01 from "./invariants/i01_ids_are_dense.js";
import * as i02 from "./invariants/i02_nothing_appears_below_a_served_head.js";
import * as i03 from "./invariants/i03_one_add.js";
import * as i04 from "./invariants/i04_the_feed_is_the_follows_minus_the_deletes.js";
import * as i05 from "./invariants/i05_nothing_of_an_author_not_followed.js";
import * as i06 from "./invariants/i06_accepted_means_in_the_outbox.js";
import * as i07 from "./invariants/i07_pages_descend_without_a_gap.js";
import * as i08 from "./invariants/i08_only_a_null_next_means_the_end.js";
import * as i09 from "./invariants/i09_recovered_means_nothing_is_missing.js";
import * as i10 from "./invariants/i10_marks_and_positions_move_forward.js";
import * as i11 from "./invariants/i11_a_delete_follows_its_add.js";
import * as i12 from "./invariants/i12_acked_sent_head.js";
import * as i14 from "./invariants/i14_the_same_changes_in_each_authors_order.js";
import * as i15 from "./invariants/i15_merged_follows_end_like_unmerged.js";
import * as i16 from "./invariants/i16_an_id_is_never_reused.js";
import * as i17 from "./invariants/i17_one_session_the_newest.js";
import * as i18 from "./invariants/i18_memory_is_bounded.js";
import { someLinesOf } from "./lines.js";

export const INVARIANTS = [i01, i02, i03, i04, i05, i06, i07, i08, i09, i10, i11, i12, i14, i15, i16, i17, i18];

/** Collects what one invariant finds. */
class Judge {
  decided = 0;
  violations = [];

  constructor(invariant) {
    this.invariant = invariant;
  }

  /** One comparison. `lines` show the violation if `sound` is false, or give them if they are a function; `why` words it. */
  holds(sound, lines, why) {
    this.decided += 1;
    if (sound) return;
    const shown = new Set(typeof lines === "function" ? lines() : lines);
    this.violations.push({ invariant: this.invariant, why: why(), lines: [...shown].sort((a, b) => a - b) });
  }
}

/** {violations: [{invariant, why, lines}], decided: {I1: count, …}, complete}. `complete`: the run went to its end. */
export function check(history) {
  const [violations, decided] = [[], {}];
  for (const { name, decide } of INVARIANTS) {
    const judge = new Judge(name);
    decide(history, judge);
    violations.push(...judge.violations);
    decided[name] = judge.decided;
  }
  return { violations, decided, complete: history.ended && history.drained !== undefined };
}

const LINES_SHOWN = 12;
const LINE_CHARACTERS = 240;

/** Each violation in words, with its lines. `textsOf`: gives the lines of these numbers, number → line. */
export function worded(violations, textsOf) {
  const texts = textsOf(violations.flatMap(({ lines }) => lines.slice(0, LINES_SHOWN)));
  return violations.map(({ invariant, why, lines }) => {
    const shown = lines.slice(0, LINES_SHOWN).map((n) => `    ${n}: ${texts.get(n)?.slice(0, LINE_CHARACTERS)}`);
    const more = lines.length > LINES_SHOWN ? [`    and ${lines.length - LINES_SHOWN} more lines`] : [];
    return [`${invariant}: ${why}`, ...shown, ...more].join("\n");
  });
}

function main(path) {
  if (path === undefined) {
    console.error("usage: node tests/history/check.js FILE");
    return 2;
  }
  const { violations, decided, complete } = check(History.load(path));
  for (const words of worded(violations, (numbers) => someLinesOf(path, numbers))) console.log(`${words}\n`);
  console.log(`decided: ${Object.entries(decided).map(([name, count]) => `${name} ${count}`).join(", ")}`);
  if (!complete) console.log("the run did not go to its end: what holds only in the end was not decided");
  console.log(`${violations.length} violations`);
  return violations.length === 0 && complete ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv[2]);
