// Items as their publishers know them: what was requested, when, and what is certain about the outcome.
//
// A publish with an idempotency key and all its retries are one item. One that never got an answer
// may exist; it becomes known when a reader is shown an item of that author with that body. One that is
// addressed to `readers` is in nobody's outbox, and has no `seq`. One that is `narrowed` is for some of the followers.
// The kind of an item says which of its readers' feeds it is of.

import { partitionPoint } from "./collections.js";

export class Items {
  #byId = new Map();
  #byAuthor = new Map(); // author → items
  #bySeq = new Map(); // author → items whose outbox_seq is known, by it
  #byReader = new Map(); // reader → items that are addressed to the reader
  #groups = new Map(); // publishes of one key
  #unknown = []; // groups without an id yet
  /** Items that were shown and that nobody had asked for: {item, n}. */
  unasked = [];

  #feeds;

  /** `feeds`: the kinds of each named feed. */
  constructor(operations, feeds) {
    this.#feeds = feeds;
    for (const operation of operations) {
      if (operation.op === "publish") this.#publish(operation);
    }
    for (const group of this.#groups.values()) this.#settle(group);
    for (const operation of operations) {
      if (operation.outcome === "refused") continue;
      if (operation.op === "edit") this.get(operation.item)?.edits.push(operation);
      if (operation.op === "delete") this.get(operation.item)?.deletes.push(operation);
    }
  }

  all() {
    return [...this.#byId.values()];
  }

  /** All authors of items. */
  authors() {
    return [...this.#byAuthor.keys()];
  }

  /** The publishes in groups, {author, publishes}; those of one group are repeats of one request. */
  groups() {
    return [...this.#groups.values()];
  }

  get(id) {
    return this.#byId.get(id);
  }

  /** Items of an author's outbox; of one feed, if it is given. */
  of(author, feed) {
    return (this.#byAuthor.get(author) ?? []).filter((item) => !item.readers && isOf(item, feed));
  }

  /** The accepted items of one feed of an author's outbox from one outbox_seq to another, with both. */
  between(author, feed, least, most) {
    if (!this.#bySeq.has(author)) this.#bySeq.set(author, this.of(author).filter(({ seq }) => seq !== undefined).sort((a, b) => a.seq - b.seq));
    const own = this.#bySeq.get(author);
    const isIn = (item) => isOf(item, feed);
    return own.slice(partitionPoint(own, ({ seq }) => seq < least), partitionPoint(own, ({ seq }) => seq <= most)).filter(isIn);
  }

  /** Items of one feed that are addressed to a reader. */
  addressed(reader, feed) {
    return (this.#byReader.get(reader) ?? []).filter((item) => isOf(item, feed));
  }

  /** The publishes of an author to the outbox that may have happened and whose item nobody has seen; of one feed, if it is given. */
  unseen(author, feed) {
    return this.#unknown.filter((group) => group.author === author && !group.publishes[0].readers && isOf(group, feed));
  }

  /** An item was shown to somebody: the one it is, or undefined. */
  meet(shown, n) {
    const known = this.get(shown.id);
    if (known) return known;
    const body = JSON.stringify(shown.body);
    const group = this.#unknown.find(({ author, publishes }) => author === shown.author && JSON.stringify(publishes[0].body) === body);
    if (group === undefined) {
      this.unasked.push({ item: shown, n });
      return undefined;
    }
    this.#unknown.splice(this.#unknown.indexOf(group), 1);
    return this.#add(shown.id, group, undefined);
  }

  #publish(operation) {
    const name = operation.key === undefined ? `line ${operation.lines[0]} ${this.#groups.size}` : JSON.stringify([operation.author, operation.key]);
    const group = this.#groups.get(name) ?? { author: operation.author, feed: this.#feedOf(operation.kind), publishes: [] };
    group.publishes.push(operation);
    this.#groups.set(name, group);
  }

  #settle(group) {
    const done = group.publishes.find(({ outcome }) => outcome === "done");
    if (done) this.#add(done.answer.id, group, done);
    else if (group.publishes.some(({ outcome }) => outcome === "unknown")) this.#unknown.push(group);
  }

  #feedOf(kind) {
    return Object.keys(this.#feeds).find((name) => this.#feeds[name].includes(kind)) ?? "feed";
  }

  #add(id, { author, feed, publishes }, done) {
    const start = Math.min(...publishes.map((publish) => publish.start));
    const lines = publishes.flatMap((publish) => publish.lines);
    const { readers, narrowed } = publishes[0];
    const item = { id, author, feed, readers, narrowed, seq: done?.answer.outbox_seq ?? undefined, start, end: done?.end ?? Infinity, lines, edits: [], deletes: [] };
    if (this.#byId.has(id)) return this.#byId.get(id);
    this.#byId.set(id, item);
    put(this.#byAuthor, author, item);
    for (const reader of readers ?? []) put(this.#byReader, reader, item);
    return item;
  }
}

function put(index, name, item) {
  if (!index.has(name)) index.set(name, []);
  index.get(name).push(item);
}

const isOf = ({ feed }, wanted) => wanted === undefined || feed === wanted;

/** Whether its publisher was told that it is accepted. */
export const isAccepted = (item) => item.end !== Infinity;

/** Whether it may have been deleted before `at`. */
export const maybeDeleted = (item, at = Infinity) => item.deletes.some(({ start }) => start < at);

/** Whether it was certainly deleted at `at`. */
export const surelyDeleted = (item, at = Infinity) => item.deletes.some(({ outcome, end }) => outcome === "done" && end <= at);

/** The least and the greatest version that it may have in the end. */
export function versions(item) {
  const done = item.edits.filter(({ outcome }) => outcome === "done").length;
  return { least: 1 + done, most: 1 + item.edits.length };
}
