// I12: acked ≤ sent ≤ head for each device; devices are independent.
//
// Decides: the stored position that a session list shows for a device is one that this device itself has
// named before, of the main feed (by `ack`, `history`, or a `recover` in items mode) and was not refused; nothing was pushed
// beyond the log's last head, and no ack beyond it was accepted. Cannot see: positions of devices whose
// sessions nobody listed.

import { grouped } from "../collections.js";

export const name = "I12";

export function decide({ connections, operations, final }, judge) {
  const names = connections.flatMap(({ reader, device, named }) =>
    named.filter(({ channel, outcome }) => channel === "feed" && outcome !== "refused").map((one) => ({ ...one, device: `${reader} ${device}` })),
  );
  const [devices, positions] = [grouped(names, ({ device }) => device), grouped(names, ({ device, epoch, offset }) => `${device} ${epoch}:${offset}`)];
  for (const { op, outcome, user, answer, end, lines } of operations) {
    if (op !== "sessions" || outcome !== "done") continue;
    for (const { device, position } of answer.sessions.filter(({ position }) => position !== null)) {
      const at = `${position.epoch}:${position.offset}`;
      const known = positions.get(`${user} ${device} ${at}`)?.some((named) => named.at <= end);
      const own = () => (devices.get(`${user} ${device}`) ?? []).filter((named) => named.at <= end).slice(-3);
      const why = () => `${user}'s device ${device} is stored at ${at}, which it has never acknowledged`;
      judge.holds(known, () => [...own().map(({ n }) => n), ...lines], why);
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
