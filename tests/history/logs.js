// The change logs of readers, put together from everything anybody was shown of them: pushes,
// `history` and `changes`.
//
// A change is shown as its item is *now*: an `add` or `update` of an item that is gone by then is shown
// as a `delete`. So several observations of one offset may differ in that, and only in that.

import { greatest, grouped } from "./collections.js";

export class Logs {
  #logs = new Map(); // reader and feed → epoch → Log

  constructor(connections, operations, items) {
    for (const connection of connections) this.#connection(connection, items);
    for (const operation of operations) {
      if (operation.outcome !== "done") continue;
      if (operation.op === "changes") this.#changes(operation, items);
      if (operation.op === "feed") this.#page(operation, items);
    }
    for (const log of this.all()) log.settle(items);
  }

  all() {
    return [...this.#logs.values()].flatMap((epochs) => [...epochs.values()]);
  }

  /** Every log of a reader's feed. */
  of({ reader, feed }) {
    return [...(this.#logs.get(`${reader} ${feed}`)?.values() ?? [])];
  }

  /** The feeds that anybody was shown anything of: [{reader, feed}]. */
  inboxes() {
    return [...this.#logs.values()].map((epochs) => [...epochs.values()][0]).map(({ reader, feed }) => ({ reader, feed }));
  }

  log({ reader, feed }, epoch) {
    const inbox = `${reader} ${feed}`;
    if (!this.#logs.has(inbox)) this.#logs.set(inbox, new Map());
    const epochs = this.#logs.get(inbox);
    if (!epochs.has(epoch)) epochs.set(epoch, new Log(reader, feed, epoch));
    return epochs.get(epoch);
  }

  #connection({ reader, subscriptions, histories }, items) {
    for (const { channel, epoch, offset, recovered, askedAt, at, lines, pushes, extra } of subscriptions) {
      const log = this.log({ reader, feed: channel }, epoch);
      if (!recovered) log.heads.push({ offset, start: askedAt, end: at, lines });
      for (const { offset, data, at, n } of pushes) log.see(offset, data, { at, n }, items);
      for (const { offset, data } of extra) log.see(offset, data, { at, n: lines[1] }, items);
    }
    for (const { channel, reply, at, lines } of histories) {
      const log = this.log({ reader, feed: channel }, reply.epoch);
      log.heads.push({ offset: reply.offset ?? 0, start: at, end: at, lines });
      for (const { offset, data } of reply.publications ?? []) log.see(offset, data, { at, n: lines[1] }, items);
    }
  }

  #changes({ user, feed, answer, start, end, lines }, items) {
    const log = this.log({ reader: user, feed }, answer.position.epoch);
    log.heads.push({ offset: answer.head, start, end, lines });
    for (const { offset, ...data } of answer.changes) log.see(offset, data, { at: end, n: lines[1] }, items);
  }

  #page({ user, feed, answer, start, end, lines }, items) {
    const { epoch, offset } = answer.position;
    this.log({ reader: user, feed }, epoch).heads.push({ offset, start, end, lines });
    for (const item of answer.items) items.meet(item, lines[1]);
  }
}

class Log {
  /** Where the log stood at some moment of [start, end]: {offset, start, end, lines}. */
  heads = [];
  /** Every sight of a change: {offset, op, id, author, version, shown, at, n}, by offset. */
  sights = new Map();
  /** The changes that are known, ascending: {offset, op, id, author, item, at (first seen), lines}. */
  changes = [];
  /** The greatest offset anybody has seen a change at or a head of. */
  most = 0;
  /** Every change from 1 up to this offset is known. */
  knownUpTo = 0;
  /** When anybody was first shown the log or its head. */
  servedAt = Infinity;

  constructor(reader, feed, epoch) {
    Object.assign(this, { reader, feed, epoch });
    /** The name of the log in messages. */
    this.name = `${reader}'s log ${feed === "feed" ? "" : `of ${feed} `}of epoch ${epoch}`;
  }

  see(offset, data, { at, n }, items) {
    if (data === undefined || data.op === "behind") return;
    if (data.item) items.meet(data.item, n);
    if (!this.sights.has(offset)) this.sights.set(offset, []);
    const { op, item, item_id: id = item?.id } = data;
    this.sights.get(offset).push({ offset, op, id, author: data.author ?? item?.author, version: item?.version, shown: item, at, n });
  }

  settle(items) {
    this.most = Math.max(greatest([...this.sights.keys()]), greatest(this.heads.map(({ offset }) => offset)));
    for (const [offset, sights] of [...this.sights].sort(([a], [b]) => a - b)) {
      // What was shown before the item was deleted tells more than what is shown after.
      const best = sights.find(({ op }) => op !== "delete") ?? sights[0];
      const item = items.get(best.id);
      const at = Math.min(...sights.map((sight) => sight.at));
      this.changes.push({ ...best, offset, item, author: best.author ?? item?.author, at, lines: sights.map(({ n }) => n) });
    }
    this.servedAt = -greatest([...this.heads.map(({ end }) => -end), ...this.changes.map(({ at }) => -at)], -Infinity);
    const hole = this.changes.findIndex((change, i) => change.offset !== i + 1);
    this.knownUpTo = hole === -1 ? this.changes.length : hole;
  }

  /** The changes of each author that no forget takes away, for they were addressed to the reader: [{author, changes}]. */
  direct() {
    const direct = this.changes.filter(({ item }) => item?.readers);
    return [...grouped(direct, ({ author }) => author)].map(([author, changes]) => ({ author, changes }));
  }

  /**
   * The other changes of each author between two forgets, in order: [{author, changes}]. Nothing is known about an
   * offset that nobody was shown; it may have been a forget, so all stretches end there.
   */
  stretches() {
    const done = [];
    let open = new Map();
    let next = this.changes[0]?.offset;
    for (const change of this.changes) {
      if (change.offset !== next) open = new Map();
      next = change.offset + 1;
      if (change.op === "forget") open.delete(change.author);
      else if (change.author !== undefined && !change.item?.readers) {
        if (!open.has(change.author)) done.push(open.set(change.author, { author: change.author, changes: [] }).get(change.author));
        open.get(change.author).changes.push(change);
      }
    }
    return done;
  }
}
