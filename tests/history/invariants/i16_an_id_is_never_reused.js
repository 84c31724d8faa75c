// I16: a sequence id is never reused for another change within an epoch, whatever Redis lost.
//
// Decides: all sights of one (reader, epoch, offset), by whatever device and however read, are of one
// change; an epoch's head never goes back in real time; and a reader's epochs only grow. A sight may differ
// as its item does: an item that is deleted shows its adds and updates as deletes from then on, and a
// version grows. Cannot see: a change that was lost before anybody was shown it or a head above it.

export const name = "I16";

export function decide({ logs }, judge) {
  for (const log of logs.all()) {
    oneChange(judge, log);
    headsOnlyGrow(judge, log);
  }
  for (const inbox of logs.inboxes()) epochsOnlyGrow(judge, inbox, logs.of(inbox));
}

function oneChange(judge, { name: log, sights }) {
  for (const [offset, seen] of sights) {
    const [first, ...rest] = seen;
    for (const sight of rest) {
      const why = () => `${log} holds at ${offset} both ${say(first)} and ${say(sight)}`;
      judge.holds(isSame(first, sight), [first.n, sight.n], why);
    }
  }
}

/** Whether both can be sights of one change; `later` was made no earlier. */
function isSame(earlier, later) {
  if (earlier.op === "forget" || later.op === "forget") return earlier.op === later.op && earlier.author === later.author;
  if (earlier.id !== later.id) return false;
  if (earlier.op === "delete" || later.op === "delete") return true;
  return earlier.op === later.op;
}

const say = ({ op, id, author }) => (op === "forget" ? `forget ${author}` : `${op} ${id}`);

function headsOnlyGrow(judge, { name: log, heads, changes }) {
  const served = [...heads.map(({ offset, end, lines }) => ({ offset, at: end, lines })), ...changes].sort((a, b) => a.at - b.at);
  const byStart = [...heads].sort((a, b) => a.start - b.start);
  let [i, greatest] = [0, undefined];
  for (const head of byStart) {
    for (; i < served.length && served[i].at < head.start; i += 1) {
      if (!(greatest?.offset >= served[i].offset)) greatest = served[i];
    }
    if (greatest === undefined) continue;
    const before = greatest;
    const why = () => `${log} had been served up to ${before.offset}, and then its head is ${head.offset}`;
    judge.holds(head.offset >= before.offset, [...before.lines.slice(0, 2), ...head.lines], why);
  }
}

function epochsOnlyGrow(judge, { reader, feed }, logs) {
  const seen = logs
    .flatMap(({ epoch, heads }) => heads.map(({ start, end, lines }) => ({ epoch: BigInt(epoch), start, end, lines })))
    .sort((a, b) => a.start - b.start);
  const byEnd = [...seen].sort((a, b) => a.end - b.end);
  let [i, greatest] = [0, undefined];
  for (const sight of seen) {
    for (; i < byEnd.length && byEnd[i].end < sight.start; i += 1) {
      if (!(greatest?.epoch >= byEnd[i].epoch)) greatest = byEnd[i];
    }
    if (greatest === undefined) continue;
    const before = greatest;
    judge.holds(sight.epoch >= before.epoch, [...before.lines, ...sight.lines], () => `${reader}'s log of ${feed} went from epoch ${before.epoch} back to ${sight.epoch}`);
  }
}
