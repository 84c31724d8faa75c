// I17: at most one live session per (user, device); the newest wins, the older is closed with 4500, changes no
// stored state and sends at most one batch after its lease lapsed.
//
// Decides, for connections of one device where one began to connect after the other had connected: the
// older is closed within `grace_ms`, which begins anew with a fault; after `grace_ms` it is pushed at most one batch; it is closed with 4500
// only if there is a newer one; what it names after the newer had connected is not stored; a session list
// has no device twice, and in the end names for each connected device the node of the newest connection.
// Cannot see: which of two connects that overlapped came first.

export const name = "I17";

export function decide(history, judge) {
  const devices = new Map();
  for (const connection of history.connections) {
    if (!connection.connecting) continue;
    const name = `${connection.reader} ${connection.device}`;
    devices.set(name, [...(devices.get(name) ?? []), connection]);
  }
  for (const [name, connections] of devices) {
    for (const older of connections.filter(({ connected }) => connected)) succession(judge, history, name, older, connections);
  }
  lists(judge, history, devices);
}

const isNewer = (newer, older) => older.connected !== undefined && newer.connecting.at > older.connected.at;

function succession(judge, { run, drained, kind, lines: all, last }, name, older, connections) {
  const newer = connections.find((connection) => connection.connected && isNewer(connection, older));
  if (older.closed?.code === 4500) {
    const rival = connections.some((other) => other !== older && other.connecting.at < older.closed.at && !isNewer(older, other));
    judge.holds(rival, [older.connected.n, older.closed.n], () => `${name} was closed with 4500, and no newer connection was there`);
  }
  if (newer === undefined) return;
  const lines = [older.connected.n, newer.connected.n];
  const lapsed = newer.connected.at + run.grace_ms;
  const late = older.subscriptions.flatMap(({ pushes }) => pushes).filter(({ at }) => at > lapsed);
  judge.holds(late.length <= run.batch, [...lines, ...late.map(({ n }) => n)], () => `${name}: the older connection was pushed ${late.length} changes after it had lapsed`);
  const faults = all.filter((line) => line.kind === "fault").map(({ at }) => at);
  const due = Math.max(newer.connected.at, ...faults) + run.grace_ms;
  if (older.closed || due < last) {
    const until = older.closed ? `until ${older.closed.at} ms` : "to the end";
    judge.holds(older.closed?.at <= due, lines, () => `${name}: the older connection should have been closed by ${due} ms, and stayed ${until}`);
  }
}

function lists(judge, { operations, final, connections }, devices) {
  for (const { op, outcome, user, answer, end, lines } of operations) {
    if (op !== "sessions" || outcome !== "done") continue;
    const names = answer.sessions.map(({ device }) => device);
    judge.holds(new Set(names).size === names.length, lines, () => `${user} has a device twice: ${names}`);
    for (const { device, position } of answer.sessions.filter(({ position }) => position !== null)) {
      fenced(judge, `${user} ${device}`, position, end, lines, devices);
    }
  }
  for (const user of final.listed()) inTheEnd(judge, user, final.sessions(user), connections);
}

/** A stored position was named by the newest connection, or by an older one before that had connected. */
function fenced(judge, name, position, end, lines, devices) {
  const connections = (devices.get(name) ?? []).filter(({ connecting }) => connecting.at <= end);
  const naming = connections.flatMap((connection) =>
    connection.named
      .filter(({ channel, epoch, offset, at, outcome }) => channel === "feed" && outcome !== "refused" && epoch === position.epoch && offset === position.offset && at <= end)
      .map((named) => ({ ...named, stale: connections.some((other) => isNewer(other, connection) && other.connected?.at < named.at) })),
  );
  if (naming.length === 0) return; // I12
  const why = () => `${name} is stored at ${position.epoch}:${position.offset}, which only a connection has named that had been replaced`;
  judge.holds(naming.some(({ stale }) => !stale), [...naming.map(({ n }) => n), ...lines], why);
}

function inTheEnd(judge, user, { answer, lines, start }, connections) {
  const open = connections.filter(({ reader, connected, closed }) => reader === user && connected?.at < start && !(closed?.at < start));
  for (const { device, connected } of open) {
    const listed = answer.sessions.find((session) => session.device === device);
    const newer = open.find((other) => other.device === device && other.connecting.at > connected.at);
    if (newer) continue;
    judge.holds(listed !== undefined, [connected.n, ...lines], () => `${user}'s device ${device} is connected and not in the list`);
    const nodes = open.filter((other) => other.device === device).map((other) => other.connected.node);
    if (listed) judge.holds(nodes.includes(listed.node), [connected.n, ...lines], () => `${user}'s device ${device} is at ${nodes}, and listed at ${listed.node}`);
  }
}
