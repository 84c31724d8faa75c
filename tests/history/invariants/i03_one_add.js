// I3: within an epoch at most one `add` per (author, outbox_seq, generation).
//
// A new generation puts a `forget` before its adds. So decides: between two forgets of an author no item is
// added twice, and none that is addressed to the reader is in the whole epoch. Cannot see: a second add of an item that
// was deleted before anybody was shown it, for that is shown as a delete (I14 counts those).

export const name = "I3";

export function decide({ logs }, judge) {
  for (const log of logs.all()) {
    for (const { author, changes } of [...log.stretches(), ...log.direct()]) {
      const added = new Map();
      for (const change of changes.filter(({ op }) => op === "add")) {
        const first = added.get(change.id);
        const why = () => `${log.name} adds item ${change.id} of ${author} at ${first.offset} and at ${change.offset}`;
        judge.holds(first === undefined, [...(first?.lines ?? []), ...change.lines], why);
        added.set(change.id, first ?? change);
      }
    }
  }
}
