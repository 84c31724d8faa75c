// Follow edges over time, as far as they are certain.

import { Register } from "./register.js";

const SETS = { follow: true, unfollow: false };

export class Edges {
  #edges = new Map();

  constructor(operations) {
    const changes = new Map();
    for (const operation of operations) {
      if (operation.outcome === "refused" || !(operation.op in SETS)) continue;
      const name = edgeName(operation.reader, operation.author);
      if (!changes.has(name)) changes.set(name, []);
      changes.get(name).push({ ...operation, value: SETS[operation.op] });
    }
    for (const [name, own] of changes) this.#edges.set(name, new Register(false, own));
  }

  /** Every follow and unfollow of the edge that may have happened, by start. */
  changes(reader, author) {
    return this.#edge(reader, author).changes;
  }

  /** All edges that anybody has touched: [reader, author]. */
  all() {
    return [...this.#edges.keys()].map((name) => JSON.parse(name));
  }

  /** Everybody who may have followed the author at some time. */
  followers(author) {
    return this.all().filter(([, of]) => of === author).map(([reader]) => reader);
  }

  /** Whether the edge may have been on at some moment of [from, to]. */
  possiblyOn(reader, author, from, to) {
    return this.#edge(reader, author).possible(from, to).has(true);
  }

  /** What the changes say of the edge in the end: true, false, or undefined if it may be either. */
  finally(reader, author) {
    const values = this.#edge(reader, author).finally();
    return values.size > 1 ? undefined : values.has(true);
  }

  /** When an edge that is on in the end was set on, at the earliest and at the latest. */
  setOn(reader, author) {
    return this.#edge(reader, author).became(true);
  }

  #edge(reader, author) {
    return this.#edges.get(edgeName(reader, author)) ?? UNTOUCHED;
  }
}

const UNTOUCHED = new Register(false, []);
const edgeName = (reader, author) => JSON.stringify([reader, author]);
