// Edges over time, as far as they are certain: who follows whom, and what stands between them.
//
// An edge is in effect while the reader follows and no shield is up. Each is a bit of its own, with its own changes:
//
//   follows    the reader follows the author, or nobody has to, for everyone follows
//   muted      the reader has not muted the author
//   hidden     the author does not hide from the reader
//   blocked    the reader has not blocked the author
//   blockedBy  the author has not blocked the reader

import { grouped } from "./collections.js";
import { Register } from "./register.js";

const BLOCKS = ["blocked", "blockedBy"];

export class Edges {
  #edges = new Map(); // "[reader, author]" → bit → Register
  #everyone = new Map(); // author → the operations that made it so
  #neighbours; // user → those whom an edge joins with the user, either way

  constructor(operations) {
    const changes = new Map();
    for (const operation of operations.filter(({ outcome }) => outcome !== "refused")) {
      if (operation.op === "classify" && operation.class === "everyone") this.#everyOne(operation);
      for (const [reader, author, bit, value] of bitsOf(operation)) {
        const edge = edgeName(reader, author);
        if (!changes.has(edge)) changes.set(edge, {});
        (changes.get(edge)[bit] ??= []).push({ ...operation, value });
      }
    }
    for (const [edge, bits] of changes) this.#edges.set(edge, this.#registers(JSON.parse(edge)[1], bits));
    const ways = this.all().flatMap(([reader, author]) => [[reader, author], [author, reader]]);
    this.#neighbours = new Map([...grouped(ways, ([user]) => user)].map(([user, own]) => [user, own.map(([, other]) => other)]));
  }

  /** Every operation on the edge that may have happened. */
  changes(reader, author) {
    return Object.values(this.#edge(reader, author)).flatMap(({ changes }) => changes);
  }

  /** All edges that anybody has touched: [reader, author]. */
  all() {
    return [...this.#edges.keys()].map((name) => JSON.parse(name));
  }

  /** Everybody whom an edge joins with the user, either way. */
  neighbours(user) {
    return this.#neighbours.get(user) ?? [];
  }

  /** The authors whom everyone follows for sure. */
  everyones() {
    return [...this.#everyone].filter(([, changes]) => changes.some(({ outcome }) => outcome === "done")).map(([author]) => author);
  }

  /** Whether the edge may have been in effect at some moment of [from, to]. */
  possiblyOn(reader, author, from, to) {
    return mayAllBeSet(Object.values(this.#edge(reader, author)), from, to);
  }

  /** Whether the edge was certainly in effect all the while. */
  surelyOn(reader, author, from, to) {
    return Object.values(this.#edge(reader, author)).every((register) => !register.possible(from, to).has(false));
  }

  /** Whether a block by either may have been up at some moment of [from, to]. */
  possiblyBlocked(reader, author, from, to) {
    return BLOCKS.some((bit) => this.#edge(reader, author)[bit].possible(from, to).has(false));
  }

  /** Whether a block by one of them was certainly up all the while. */
  surelyBlocked(reader, author, from, to) {
    return BLOCKS.some((bit) => !this.#edge(reader, author)[bit].possible(from, to).has(true));
  }

  /** What the answers say of a bit in the end: true, false, or undefined if it may be either. */
  finally(reader, author, bit) {
    const values = this.#edge(reader, author)[bit].finally();
    return values.size > 1 ? undefined : values.has(true);
  }

  /**
   * When an edge that is in effect in the end came into effect, at the earliest and at the latest. `brings`: whether it
   * brought items from before; where everyone follows nothing is brought.
   */
  setOn(reader, author) {
    const became = Object.values(this.#edge(reader, author)).map((register) => register.became(true));
    return {
      earliest: Math.max(...became.map(({ earliest }) => earliest)),
      latest: Math.max(...became.map(({ latest }) => latest)),
      brings: this.changes(reader, author).some(({ op }) => op !== "classify"),
      lines: became.flatMap(({ lines }) => lines),
    };
  }

  #everyOne(operation) {
    this.#everyone.set(operation.author, [...(this.#everyone.get(operation.author) ?? []), { ...operation, value: true }]);
  }

  #edge(reader, author) {
    return this.#edges.get(edgeName(reader, author)) ?? this.#registers(author, {});
  }

  /** The registers of an edge. A reader without an own follow follows as everyone does. */
  #registers(author, { follows = this.#everyone.get(author) ?? [], muted = [], hidden = [], blocked = [], blockedBy = [] }) {
    const shields = Object.entries({ muted, hidden, blocked, blockedBy }).map(([bit, changes]) => [bit, new Register(true, changes)]);
    return { follows: new Register(false, follows), ...Object.fromEntries(shields) };
  }
}

/** The bits that an operation sets: [reader, author, bit, value]. */
function bitsOf({ op, reader, author, user, other, up }) {
  switch (op) {
    case "follow":
    case "unfollow":
      return [[reader, author, "follows", op === "follow"]];
    case "mute":
      return [[user, other, "muted", !up]];
    case "hide":
      return [[other, user, "hidden", !up]];
    case "block":
      return [[user, other, "blocked", !up], [other, user, "blockedBy", !up]];
    default:
      return [];
  }
}

/** Whether all of the bits may have been set at one moment of [from, to]. */
function mayAllBeSet([bit, ...others], from, to) {
  if (bit === undefined) return true;
  for (const span of bit.spans(true, from, to)) {
    if (mayAllBeSet(others, Math.max(span.from, from), Math.min(span.to, to))) return true;
  }
  return false;
}

const edgeName = (reader, author) => JSON.stringify([reader, author]);
