// I11: a delete follows its add.
//
// Decides: once an item has been shown as deleted, nobody is shown it again (a change is shown as its item
// is at that moment); and in a log, no delete of an item stands before its add without a forget between.
// Cannot see: a delete that came first where its add was never shown as one.

export const name = "I11";

export function decide({ logs, operations, items }, judge) {
  const gone = new Map(); // item → the first sight of its delete
  for (const log of logs.all()) {
    for (const { id, op, at, n } of [...log.sights.values()].flat()) {
      if (op === "delete" && !(gone.get(id)?.at <= at)) gone.set(id, { at, n });
    }
  }
  const asked = (id) => items.get(id)?.deletes.filter(({ outcome }) => outcome !== "refused") ?? [];
  for (const page of operations) {
    if (page.op !== "feed" || page.outcome !== "done") continue;
    for (const { id } of page.answer.items) {
      const deleted = gone.get(id);
      const back = deleted !== undefined && deleted.at < page.start;
      const why = () => `item ${id} had been shown as deleted, and is on a page of ${page.user}`;
      judge.holds(!back, () => [...asked(id).flatMap(({ lines }) => lines), deleted.n, ...page.lines], why);
    }
  }
  for (const log of logs.all()) {
    for (const { changes } of [...log.stretches(), ...log.direct()]) inOrder(judge, log, changes);
  }
}

function inOrder(judge, { name }, changes) {
  const deleted = new Map();
  for (const change of changes) {
    if (change.op === "delete" && !deleted.has(change.id)) deleted.set(change.id, change);
    if (change.op !== "add") continue;
    const before = deleted.get(change.id);
    const why = () => `${name} deletes item ${change.id} at ${before.offset} and adds it at ${change.offset}`;
    judge.holds(!before, [...(before?.lines ?? []), ...change.lines], why);
  }
}
