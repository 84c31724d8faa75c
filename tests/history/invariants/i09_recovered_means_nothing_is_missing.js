// I9: "recovered" ⇒ nothing missing; otherwise an explicit reset: never a partial recovery.
//
// Decides:
// - A recovered subscription begins at exactly the position that was asked for. This position is no further than its
//   log has ever been, and never in an epoch that an earlier answer had left behind.
// - A subscription that was not recovered carries no publications, and pushes nothing at or below its head.
// - A device that asked to recover is told whether it did.
// - A connection that is still subscribed in the end, in items mode, has been sent everything up to the head.
// (No gap within the pushes: I1.)

export const name = "I9";

export function decide({ connections, logs, final }, judge) {
  for (const connection of connections) {
    for (const subscription of connection.subscriptions) begun(judge, logs, connection, subscription);
    caughtUp(judge, final, connection);
  }
}

function begun(judge, logs, { reader }, subscription) {
  const inbox = { reader, feed: subscription.channel };
  const { asked, recovered, wasRecovering, epoch, offset, extra, pushes, askedAt, lines } = subscription;
  const at = `${epoch}:${offset}`;
  if (asked.recover) {
    const wants = `${asked.epoch}:${asked.offset ?? 0}`;
    judge.holds(wasRecovering, lines, () => `${reader} asked to recover from ${wants}, and was not told whether it did`);
    judge.holds(!recovered || wants === at, lines, () => `${reader} asked for ${wants}, and "recovered" to ${at}`);
  }
  if (recovered) {
    const later = logs.of(inbox).find((log) => log.servedAt < askedAt && BigInt(log.epoch) > BigInt(epoch));
    const evidence = later ? [...later.heads, ...later.changes].flatMap((seen) => seen.lines).slice(0, 2) : [];
    judge.holds(!later, [...lines, ...evidence], () => `${reader} "recovered" in epoch ${epoch}, after epoch ${later.epoch} had begun`);
    const { most } = logs.log(inbox, epoch);
    judge.holds(offset <= most, lines, () => `${reader} "recovered" at ${at}, where the log has never been seen beyond ${most}`);
  } else {
    judge.holds(extra.length === 0, lines, () => `${reader} was not recovered, and got ${extra.length} publications with it`);
    const early = pushes.find((push) => push.offset <= offset);
    judge.holds(!early, [...lines, early?.n ?? lines[0]], () => `${reader} was not recovered, began at ${at}, and was pushed ${early.offset}`);
  }
}

function caughtUp(judge, final, { reader, device, closed, open }) {
  if (!closed) for (const subscription of open.values()) atTheHead(judge, final, { reader, device }, subscription);
}

function atTheHead(judge, final, { reader, device }, current) {
  const feed = final.feed({ reader, feed: current.channel });
  if (feed === null || current.deliver !== "items") return;
  const at = `${current.epoch}:${current.pushes.at(-1)?.offset ?? current.offset}`;
  const head = `${feed.position.epoch}:${feed.position.offset}`;
  const lines = [...current.lines, ...(current.pushes.length > 0 ? [current.pushes.at(-1).n] : []), ...feed.lines];
  judge.holds(at === head, lines, () => `in the end ${reader}'s device ${device} has been sent up to ${at}; the log is at ${head}`);
}
