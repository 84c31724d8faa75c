// I12: acked ≤ sent ≤ head for each device; devices are independent.
//
// Decides: the stored position that a session list shows for a device is one that this device itself has
// named before, of the main feed (by `ack`, `history`, or a `recover` in items mode) and was not refused; nothing was pushed
// beyond the log's last head, and no ack beyond it was accepted. Cannot see: positions of devices whose
// sessions nobody listed.

export const name = "I12";

export function decide({ connections, operations, final }, judge) {
  const named = new Map();
  for (const { reader, device, named: positions } of connections) {
    const name = `${reader} ${device}`;
    named.set(name, [...(named.get(name) ?? []), ...positions.filter(({ channel, outcome }) => channel === "feed" && outcome !== "refused")]);
  }
  for (const { op, outcome, user, answer, end, lines } of operations) {
    if (op !== "sessions" || outcome !== "done") continue;
    for (const { device, position } of answer.sessions.filter(({ position }) => position !== null)) {
      const own = (named.get(`${user} ${device}`) ?? []).filter(({ at }) => at <= end);
      const known = own.some(({ epoch, offset }) => epoch === position.epoch && offset === position.offset);
      const why = () => `${user}'s device ${device} is stored at ${position.epoch}:${position.offset}, which it has never acknowledged`;
      judge.holds(known, [...own.slice(-3).map(({ n }) => n), ...lines], why);
    }
  }
  for (const inbox of final.inboxes()) belowTheHead(judge, { connections, final }, inbox);
}

function belowTheHead(judge, { connections, final }, { reader, feed }) {
  const { position: head, lines } = final.feed({ reader, feed });
  for (const { device, subscriptions, named } of connections.filter((connection) => connection.reader === reader)) {
    for (const { epoch, pushes } of subscriptions.filter(({ channel, epoch }) => channel === feed && epoch === head.epoch)) {
      for (const { offset, n } of pushes) {
        judge.holds(offset <= head.offset, [n, ...lines], () => `${reader}'s device ${device} was pushed ${epoch}:${offset}, beyond the head ${head.offset}`);
      }
    }
    for (const { channel, epoch, offset, outcome, kind, n } of named) {
      if (channel !== feed || epoch !== head.epoch || outcome !== "done" || kind === "recover") continue;
      judge.holds(offset <= head.offset, [n, ...lines], () => `${reader}'s device ${device} acknowledged ${epoch}:${offset}, beyond the head ${head.offset}`);
    }
  }
}
