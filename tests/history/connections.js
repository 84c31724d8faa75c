// Connections as devices saw them: the commands sent, the replies and pushes got, the close.
//
//   connection: number, reader, device, opened, connecting {at, n}, connected {at, n, node}, closed {at, n, code, by}
//     subscriptions: channel, id, asked, reply, deliver, epoch, offset, wasRecovering, recovered, extra, pushes [{offset, data, at, n}]
//     open: the subscription of each channel that stands
//     named: positions that this device has said it holds {channel, epoch, offset, at, n, kind, outcome}
//     histories: {channel, since, limit, reverse, reply, lines}

/** Joins the lines of each connection. */
export function connectionsOf(lines) {
  const all = new Map();
  for (const line of lines) {
    if (line.kind === "opened") all.set(line.connection, begin(line));
    const connection = all.get(line.connection);
    if (line.kind === "sent") sent(connection, line);
    else if (line.kind === "got") got(connection, line);
    else if (line.kind === "closed") connection.closed = line;
  }
  return [...all.values()];
}

function begin({ n, at, connection, reader, device, gateway }) {
  const lists = { subscriptions: [], named: [], histories: [], strays: [] };
  return { number: connection, reader, device, gateway, opened: { at, n }, ...lists, waiting: new Map(), open: new Map() };
}

function sent(connection, line) {
  const { id, connect, subscribe, rpc, history, unsubscribe } = line.message;
  connection.waiting.set(id, line);
  if (connect) connection.connecting = line;
  if (unsubscribe) connection.open.delete(unsubscribe.channel);
  if (subscribe?.recover && subscribe.data?.deliver === "items") name(connection, line, "recover", subscribe.channel, subscribe);
  if (rpc?.method === "ack" && rpc.data) name(connection, line, "ack", rpc.data.channel ?? "feed", rpc.data);
  if (history?.since && !history.reverse) name(connection, line, "history", history.channel, history.since);
}

function name(connection, { at, n, message }, kind, channel, { epoch, offset }) {
  connection.named.push({ kind, channel, id: message.id, epoch, offset: offset ?? 0, at, n, outcome: "unknown" });
}

function got(connection, line) {
  const { id, push, connect, subscribe, history, error } = line.message;
  if (push) {
    const to = subscriptionOf(connection, push)?.pushes ?? connection.strays;
    to.push({ offset: push.pub?.offset, data: push.pub?.data, at: line.at, n: line.n });
    return;
  }
  const asked = connection.waiting.get(id);
  if (asked === undefined) return;
  const named = connection.named.find((named) => named.id === id);
  if (named) named.outcome = error ? "refused" : "done";
  if (connect) connection.connected = { at: line.at, n: line.n, node: connect.node };
  if (subscribe) begun(connection, asked, line, subscribe);
  if (history) connection.histories.push({ ...asked.message.history, at: line.at, reply: history, lines: [asked.n, line.n] });
}

/** The standing subscription that a push is of, by the number of its channel or by its name. */
function subscriptionOf({ open }, { id, channel }) {
  return id === undefined ? open.get(channel) : [...open.values()].find((subscription) => subscription.id === id);
}

function begun(connection, asked, line, reply) {
  const { channel } = asked.message.subscribe;
  const subscription = {
    channel,
    asked: asked.message.subscribe,
    askedAt: asked.at,
    at: line.at,
    lines: [asked.n, line.n],
    deliver: asked.message.subscribe.data?.deliver ?? "notify",
    id: reply.id,
    epoch: reply.epoch,
    offset: reply.offset ?? 0,
    wasRecovering: reply.was_recovering === true,
    recovered: reply.recovered === true,
    extra: reply.publications ?? [],
    pushes: [],
  };
  connection.open.set(channel, subscription);
  connection.subscriptions.push(subscription);
}
