// What was read after the line `drained`: the final state of the run.

import { newestFirst } from "../../examples/feed.js";

export class Final {
  #operations;
  /** What apps showed: the `view` lines. */
  views;

  constructor(lines, operations, drained) {
    this.#operations = drained ? operations.filter((operation) => operation.start > drained.at && operation.outcome === "done") : [];
    this.views = drained ? lines.filter(({ kind, at }) => kind === "view" && at >= drained.at) : [];
  }

  /** The feeds that were walked to their ends: [{reader, feed}]. */
  inboxes() {
    return this.#walked("feed").map(({ user, feed }) => ({ reader: user, feed }));
  }

  /** Those who have a list of that name that was walked to its end. */
  listing(name) {
    return this.#walked(name).map(({ user }) => user);
  }

  /** The profiles that were walked to their ends: [{author, feed}]. */
  profiles() {
    return this.#walked("outbox").map(({ user, feed }) => ({ author: user, feed }));
  }

  /** {items, position, lines}; null unless walked to its end. */
  feed({ reader, feed }) {
    const pages = this.#walk("feed", reader, feed);
    return pages && { items: pages.flatMap(({ answer }) => answer.items), position: pages[0].answer.position, lines: linesOf(pages) };
  }

  /** {items, lines}: the living items of an author in one feed. */
  outbox({ author, feed }) {
    const pages = this.#walk("outbox", author, feed);
    return pages && { items: pages.flatMap(({ answer }) => answer.items), lines: linesOf(pages) };
  }

  /** One of a user's lists, "following", "muted", "hidden" or "blocked": {users: Set, lines}; null unless walked to its end. */
  list(name, user) {
    const pages = this.#walk(name, user);
    return pages && { users: new Set(pages.flatMap(({ answer }) => answer.users.map(({ user }) => user))), lines: linesOf(pages) };
  }

  /** Which of the authors are behind a shield, by the lists: {users: Set, lines}. */
  shields(reader, authors) {
    const own = ["muted", "blocked"].map((name) => this.list(name, reader) ?? NOBODY);
    const theirs = new Map([...authors].map((author) => [author, ["hidden", "blocked"].map((name) => this.list(name, author) ?? NOBODY)]));
    const isBehind = (author) => own.some(({ users }) => users.has(author)) || theirs.get(author).some(({ users }) => users.has(reader));
    return { users: new Set([...authors].filter(isBehind)), lines: [...own, ...[...theirs.values()].flat()].flatMap(({ lines }) => lines) };
  }

  /** The last list of a user's sessions. */
  sessions(reader) {
    return this.#reads("sessions", reader).at(-1);
  }

  /** Everybody whose sessions were listed. */
  listed() {
    return [...new Set(this.#reads("sessions").map(({ user }) => user))];
  }

  /** {epoch, changes, head, lines}: the whole log, read from 0 to its head; null if it was not, or was cut. */
  log({ reader, feed }) {
    const reads = this.#reads("changes", reader, feed);
    const chain = [];
    for (const read of reads) {
      const { offset = "0", epoch = read.answer.position.epoch } = read.query;
      const last = chain.at(-1)?.answer.position;
      if (Number(offset) === 0) chain.length = 0;
      else if (last?.epoch !== epoch || last.offset !== Number(offset)) continue;
      chain.push(read);
    }
    const end = chain.at(-1)?.answer;
    if (end === undefined || end.position.offset < end.head) return null;
    return { epoch: end.position.epoch, changes: chain.flatMap(({ answer }) => answer.changes), head: end.head, lines: linesOf(chain) };
  }

  #reads(op, user, feed) {
    const isAsked = ({ user: of, feed: name }) => (user === undefined || of === user) && (feed === undefined || name === feed);
    return this.#operations.filter((operation) => operation.op === op && isAsked(operation));
  }

  /** {user, feed} of each list that was walked to its end. */
  #walked(op) {
    const all = new Map(this.#reads(op).map(({ user, feed }) => [`${user} ${feed}`, { user, feed }]));
    return [...all.values()].filter(({ user, feed }) => this.#walk(op, user, feed) !== null);
  }

  /** The last walk from a first page to the end. */
  #walk(op, user, feed) {
    let [walk, done] = [null, null];
    for (const page of this.#reads(op, user, feed)) {
      if (page.query.cursor === undefined) walk = [page];
      else if (walk?.at(-1).answer.next === page.query.cursor) walk.push(page);
      if (walk?.at(-1).answer.next === null) done = walk;
    }
    return done;
  }
}

const NOBODY = { users: new Set(), lines: [] };

/** What a device shows that takes in `changes` from nothing: items, newest first. */
export function replay(changes) {
  const shown = new Map();
  for (const { op, item, item_id: id, author } of changes) {
    if (op === "add" || (op === "update" && shown.has(item.id))) shown.set(item.id, item);
    else if (op === "delete") shown.delete(id);
    else if (op === "forget") for (const [id, held] of shown) if (held.author === author && !held.direct) shown.delete(id);
  }
  return [...shown.values()].sort(newestFirst);
}

const linesOf = (operations) => operations.flatMap(({ lines }) => lines);
