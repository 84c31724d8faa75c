// A story in which one thing goes wrong: the checker must name the invariant, with lines that show it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { check } from "./check.js";
import { Story } from "./story.js";

/** ann follows bob, has a phone and two posts. */
function begin(run) {
  const story = new Story(run);
  story.follow("ann", "bob");
  const phone = story.connect("ann", "ios");
  const first = story.publish("bob", "one");
  const second = story.publish("bob", "two");
  return { story, phone, first, second };
}

/** A test of it. `tell`: what goes wrong after the beginning; it may give another history. */
export function breaks(invariant, sentence, tell, run) {
  test(`${invariant.toLowerCase()}: ${sentence}`, () => {
    const told = begin(run);
    const history = tell(told) ?? told.story.finish();
    const { violations } = check(history);
    const found = violations.filter((violation) => violation.invariant === invariant);
    assert.notEqual(found.length, 0, `found only ${JSON.stringify(violations)}`);
    for (const { lines, why } of found) {
      assert.ok(lines.length > 0 && lines.every((n) => n >= 1 && n <= history.lines.length), `${why}: ${lines}`);
    }
  });
}
