// I7: pages: strictly descending, no repeat, no gap, under concurrent inserts.
//
// Decides, for every page anybody read: it descends strictly by (rank, id); the page behind a cursor is
// strictly below the page that gave the cursor; and an item that the log holds at or below the page's
// position, living and between the page's bounds, is on it. Cannot see: gaps below what the log shows.

import { newestFirst } from "../../../examples/feed.js";
import { maybeDeleted } from "../items.js";
import { replay } from "../final.js";

export const name = "I7";

export function decide(history, judge) {
  const givers = new Map(); // reader, feed and cursor → the page that gave it
  for (const page of history.operations) {
    if (page.op !== "feed" || page.outcome !== "done") continue;
    const above = givers.get(`${page.user} ${page.feed} ${page.query.cursor}`);
    descends(judge, page, above?.answer.items.at(-1), above?.lines ?? []);
    if (page.query.cursor === undefined || above) complete(judge, history, page, above?.answer.items.at(-1));
    if (page.answer.next !== null) givers.set(`${page.user} ${page.feed} ${page.answer.next}`, page);
  }
}

function descends(judge, { user, answer, lines }, above, aboveLines) {
  let last = above;
  for (const item of answer.items) {
    const before = last;
    if (before) {
      const why = () => `${user}'s page has item ${item.id} (rank ${item.rank}) below item ${before.id} (rank ${before.rank})`;
      judge.holds(newestFirst(before, item) < 0, [...aboveLines, ...lines], why);
    }
    last = item;
  }
}

/** All that the log shows at the page's position is on the page. */
function complete(judge, history, { user, feed, answer, end, lines }, above) {
  const { epoch, offset } = answer.position;
  const log = history.logs.log({ reader: user, feed }, epoch);
  if (log.knownUpTo < offset) return;
  const shown = new Set(answer.items.map(({ id }) => id));
  const bottom = answer.next === null ? undefined : answer.items.at(-1);
  const upTo = log.changes.filter((change) => change.offset <= offset);
  for (const item of replay(upTo.map((change) => ({ ...change, item: change.shown, item_id: change.id })))) {
    const known = history.items.get(item.id);
    if (known === undefined || maybeDeleted(known, end)) continue;
    if ((above && newestFirst(above, item) >= 0) || (bottom && newestFirst(item, bottom) >= 0)) continue;
    const change = upTo.findLast(({ op, id }) => op === "add" && id === item.id);
    const why = () => `${user}'s page at ${epoch}:${offset} lacks item ${item.id}, which the log holds at ${change.offset}`;
    judge.holds(shown.has(item.id), [...change.lines.slice(0, 2), ...lines], why);
  }
}
