// I2: nothing appears at or below a served head later.
//
// Decides, by real time: an item that was published only after a head had been served does not stand at or
// below that head; an item that was published after another of its author had been accepted has a greater
// outbox_seq. Cannot see: an old item that slips in below a head, unless a page shows it (I7).

import { partitionPoint } from "../collections.js";
import { isAccepted } from "../items.js";

export const name = "I2";

export function decide({ logs, items }, judge) {
  for (const { name: log, heads, changes } of logs.all()) {
    // The greatest head served up to a moment; pushes and reads of a change are heads too.
    const served = [...heads.map(({ offset, end, lines }) => ({ offset, at: end, lines })), ...changes].sort((a, b) => a.at - b.at);
    const greatest = prefixMaxima(served);
    for (const { offset, op, item, lines } of changes) {
      if (op !== "add" || item === undefined) continue;
      const before = greatest(item.start);
      if (before === undefined) continue;
      const why = () => `${log} was served up to ${before.offset}; then item ${item.id} was published, and stands at ${offset}`;
      judge.holds(offset > before.offset, [...before.lines.slice(0, 2), ...item.lines.slice(0, 2), ...lines.slice(0, 2)], why);
    }
  }
  for (const author of items.authors()) outboxInOrder(items.of(author), judge);
}

function outboxInOrder(items, judge) {
  const accepted = items.filter((item) => isAccepted(item)).sort((a, b) => a.end - b.end);
  const greatest = prefixMaxima(accepted.map((item) => ({ offset: item.seq, at: item.end, item })));
  for (const item of accepted) {
    const before = greatest(item.start);
    if (before === undefined) continue;
    const earlier = `item ${before.item.id} with ${before.offset} had been accepted before it was published`;
    const why = () => `item ${item.id} has outbox_seq ${item.seq}, though ${earlier}`;
    judge.holds(item.seq > before.offset, [...before.item.lines, ...item.lines], why);
  }
}

/** A function that finds, among those with `at` below a moment, one with the greatest offset. */
function prefixMaxima(sorted) {
  const maxima = [];
  for (const one of sorted) maxima.push(maxima.length > 0 && maxima.at(-1).offset >= one.offset ? maxima.at(-1) : one);
  return (moment) => maxima[partitionPoint(sorted, ({ at }) => at < moment) - 1];
}
