// I10: marks and watermarks only move forward, never past an item not appended.
//
// Visible from outside: between two items of an author that stand in a log and came by one door, pushed or
// pulled, in one stretch without a forget, no accepted item of that author and door is left out (the progress, or
// the watermark, has not moved past it), nor is one that an author addressed to the reader before another that
// stands there; and the stored position of a device never goes back, but where somebody has broken the Redis that
// keeps it: what that has lost is late, as positions may be, and a device is sent again what it has. Stretches as
// long as a log's least length are not decided: a log that was cut may lack some. Cannot see: the marks
// themselves, and what took which door where the class was not certain.

import { partitionPoint } from "../collections.js";
import { maybeDeleted } from "../items.js";

export const name = "I10";

export function decide(history, judge) {
  const { logs, items, edges, run } = history;
  for (const log of logs.all()) {
    if (log.changes.length >= run.keep) continue;
    for (const stretch of log.stretches()) {
      for (const door of ["push", "pull"]) nothingIsPassedOver(judge, log, stretch, history, door);
    }
    const held = new Set(log.changes.map(({ id }) => id));
    for (const { author, changes } of log.direct()) nothingAddressedIsPassedOver(judge, log, author, changes, { items, edges, held });
  }
  positionsOnlyGrow(judge, history);
}

function nothingIsPassedOver(judge, { name, reader, feed }, { author, changes }, { items, audiences }, door) {
  const seqs = changes.filter(({ op, item }) => op === "add" && item?.seq !== undefined && item.route === door).map(({ item }) => item.seq);
  const [least, most] = [Math.min(...seqs), Math.max(...seqs)];
  const held = new Set(changes.map(({ id }) => id));
  const lines = [changes[0], changes.at(-1)].flatMap((change) => change.lines.slice(0, 1));
  for (const item of items.between(author, feed, least, most)) {
    if (item.route !== door || maybeDeleted(item) || !audiences.surelyHas(item, reader)) continue;
    const why = () => `${name} has outbox_seq ${least} and ${most} of ${author}, and not item ${item.id} with ${item.seq}`;
    judge.holds(held.has(item.id), [...item.lines, ...lines], why);
  }
}

/** What one author addresses to a reader is taken in as it was accepted. */
function nothingAddressedIsPassedOver(judge, log, author, changes, { items, edges, held }) {
  const last = changes.findLast(({ op, offset }) => op === "add" && offset <= log.knownUpTo);
  if (last === undefined) return;
  for (const item of items.addressed(log.reader, log.feed)) {
    if (item.author !== author || maybeDeleted(item) || !(item.end < last.item.start)) continue;
    if (edges.possiblyBlocked(log.reader, author, item.start, item.end)) continue;
    const why = () => `${log.name} has item ${last.id} that ${author} addressed to ${log.reader}, and not ${item.id} from before`;
    judge.holds(held.has(item.id), [...item.lines, ...last.item.lines, ...last.lines], why);
  }
}

function positionsOnlyGrow(judge, history) {
  const { operations } = history;
  const losses = history.kind("fault").filter(({ who }) => who === "redis").map(({ at }) => at);
  const lists = operations.filter(({ op, outcome }) => op === "sessions" && outcome === "done").sort((a, b) => a.start - b.start);
  const known = new Map(); // user and device → what lists that had been answered have shown
  const lost = (by) => losses[partitionPoint(losses, (at) => at < by) - 1] ?? -Infinity; // the last loss before
  for (const { user, answer, start, end, lines } of lists) {
    for (const { device, position } of answer.sessions.filter(({ position }) => position !== null)) {
      const name = `${user} ${device}`;
      // Later lists begin later too, so none of them needs what this one no longer does.
      const kept = (known.get(name) ?? []).filter((one) => one.start >= lost(start));
      const before = kept.filter((one) => one.end < start && one.start >= lost(end));
      const later = before.find((one) => isBelow(position, one.position));
      const why = () => `the stored position of ${user}'s device ${device} went from ${say(later.position)} back to ${say(position)}`;
      judge.holds(!later, [...(later?.lines ?? []), ...lines], why);
      known.set(name, [...kept, { position, start, end, lines }]);
    }
  }
}

const isBelow = (a, b) => BigInt(a.epoch) < BigInt(b.epoch) || (a.epoch === b.epoch && a.offset < b.offset);
const say = ({ epoch, offset }) => `${epoch}:${offset}`;
