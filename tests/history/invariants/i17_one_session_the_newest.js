// I17: at most one live session per (user, device); the newest wins, the older is closed with 4500, changes no
// stored state and sends at most one batch after its lease lapsed.
//
// Decides, for connections of one device where one began to connect after the other had connected: the
// older is closed within `grace_ms`, which begins anew with a fault; after `grace_ms` it is pushed at most one batch; it is closed with 4500
// only if there is a newer one; what it names after the newer had connected is not stored; a session list
// has no device twice, and in the end names for each connected device the node of the newest connection.
// Cannot see: which of two connects that overlapped came first.

import { greatest, grouped, partitionPoint } from "../collections.js";

export const name = "I17";

export function decide(history, judge) {
  const connecting = history.connections.filter((connection) => connection.connecting);
  const devices = new Map([...grouped(connecting, ({ reader, device }) => `${reader} ${device}`)].map(([name, own]) => [name, new Device(name, own)]));
  const lastFault = greatest(history.kind("fault").map(({ at }) => at));
  for (const device of devices.values()) {
    for (const older of device.connections.filter(({ connected }) => connected)) succession(judge, history, device, older, lastFault);
  }
  lists(judge, history, devices);
}

const isNewer = (newer, older) => older.connected !== undefined && newer.connecting.at > older.connected.at;

/** A device's connections, and the positions that they have named. */
class Device {
  #naming; // "epoch:offset" of the main feed → when it was named, and by which connection

  constructor(name, connections) {
    this.name = name;
    /** By the time at which they began to connect. */
    this.connections = connections.sort((a, b) => a.connecting.at - b.connecting.at);
    const named = connections.flatMap((connection) => connection.named.map((one) => ({ ...one, connection })));
    const ofFeed = named.filter(({ channel, outcome }) => channel === "feed" && outcome !== "refused");
    this.#naming = grouped(ofFeed, ({ epoch, offset }) => `${epoch}:${offset}`);
  }

  /** When a position of the main feed was named, and by which connection: [{at, n, connection}]. */
  naming({ epoch, offset }) {
    return this.#naming.get(`${epoch}:${offset}`) ?? [];
  }

  /** The first newer connection that had connected before `at`. */
  successor(older, at = Infinity) {
    for (let i = partitionPoint(this.connections, (other) => !isNewer(other, older)); this.connections[i]?.connecting.at < at; i += 1) {
      if (this.connections[i].connected?.at < at) return this.connections[i];
    }
    return undefined;
  }

  /** Whether another connection that is not surely older began to connect before `at`. */
  hasRival(older, at) {
    for (let i = partitionPoint(this.connections, ({ connecting }) => connecting.at < at) - 1; i >= 0; i -= 1) {
      if (this.connections[i] !== older && !isNewer(older, this.connections[i])) return true;
    }
    return false;
  }
}

function succession(judge, { run, last }, device, older, lastFault) {
  const { name } = device;
  if (older.closed?.code === 4500) {
    const rival = device.hasRival(older, older.closed.at);
    judge.holds(rival, [older.connected.n, older.closed.n], () => `${name} was closed with 4500, and no newer connection was there`);
  }
  const newer = device.successor(older);
  if (newer === undefined) return;
  const lines = [older.connected.n, newer.connected.n];
  const lapsed = newer.connected.at + run.grace_ms;
  const late = older.subscriptions.flatMap(({ pushes }) => pushes).filter(({ at }) => at > lapsed);
  judge.holds(late.length <= run.batch, [...lines, ...late.map(({ n }) => n)], () => `${name}: the older connection was pushed ${late.length} changes after it had lapsed`);
  const due = Math.max(newer.connected.at, lastFault) + run.grace_ms;
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
      fenced(judge, devices.get(`${user} ${device}`), position, end, lines);
    }
  }
  for (const user of final.listed()) inTheEnd(judge, user, final.sessions(user), connections);
}

/** A stored position was named by the newest connection, or by an older one before that had connected. */
function fenced(judge, device, position, end, lines) {
  const naming = device?.naming(position).filter(({ at }) => at <= end) ?? [];
  if (naming.length === 0) return; // I12
  const valid = naming.some(({ connection, at }) => device.successor(connection, at) === undefined);
  const why = () => `${device.name} is stored at ${position.epoch}:${position.offset}, which only a connection has named that had been replaced`;
  judge.holds(valid, [...naming.map(({ n }) => n), ...lines], why);
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
