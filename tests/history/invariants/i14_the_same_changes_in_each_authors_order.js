// I14: resume at any crash point gives the same changes, dense, in each author's order per door.
//
// Decides, for one stretch of a log between two forgets of an author:
// - The author's adds by one door, those certainly pushed and those certainly pulled, rise by outbox_seq.
// - Items that an author addressed to the reader stand in the order in which they were accepted.
// - No item has more changes than its records make: one add, its edits, its delete.
// (Dense: I1. Equal for all who read: I16.) Cannot see: the order of edits and deletes among themselves.

import { grouped } from "../collections.js";

export const name = "I14";

export function decide({ logs }, judge) {
  for (const log of logs.all()) {
    const where = log.name;
    for (const { changes } of log.direct()) {
      asAccepted(judge, where, changes.filter(({ op }) => op === "add"));
      notTooMany(judge, where, changes);
    }
    for (const { author, changes } of log.stretches()) {
      const adds = changes.filter(({ op, item }) => op === "add" && item?.seq !== undefined);
      for (const door of ["push", "pull"]) rising(judge, where, author, adds.filter(({ item }) => item.route === door));
      notTooMany(judge, where, changes.filter(({ item }) => item !== undefined));
    }
  }
}

function rising(judge, where, author, adds) {
  for (const [i, add] of adds.entries()) {
    const before = adds[i - 1];
    if (before === undefined) continue;
    const why = () => `${where} has outbox_seq ${add.item.seq} of ${author} at ${add.offset}, behind ${before.item.seq} at ${before.offset}`;
    judge.holds(add.item.seq > before.item.seq, [...before.lines, ...add.lines, ...add.item.lines], why);
  }
}

/** None was accepted before the one above it in the log was asked for. */
function asAccepted(judge, where, adds) {
  for (const [i, add] of adds.entries()) {
    const before = adds[i - 1];
    if (before === undefined) continue;
    const why = () => `${where} has item ${add.id} at ${add.offset}, behind ${before.id} at ${before.offset}, which was addressed later`;
    judge.holds(!(add.item.end < before.item.start), [...before.lines, ...add.lines, ...before.item.lines, ...add.item.lines], why);
  }
}

function notTooMany(judge, where, changes) {
  for (const [id, own] of grouped(changes, ({ id }) => id)) {
    const { edits, deletes } = own[0].item;
    const most = 1 + edits.length + Math.min(1, deletes.length);
    const why = () => `${where} has ${own.length} changes of item ${id}, whose records make at most ${most}`;
    judge.holds(own.length <= most, own.flatMap(({ lines }) => lines), why);
  }
}
