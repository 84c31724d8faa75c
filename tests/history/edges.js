// Follow edges over time, as far as they are certain.
//
// Operations of one edge may overlap, and one without an answer may take effect at any time after it
// was asked. So an edge is only ever *surely* or *possibly* on.

export class Edges {
  #edges = new Map();

  constructor(operations) {
    for (const operation of operations) {
      if (operation.outcome === "refused" || !["follow", "unfollow"].includes(operation.op)) continue;
      const name = edgeName(operation.reader, operation.author);
      if (!this.#edges.has(name)) this.#edges.set(name, []);
      this.#edges.get(name).push(operation);
    }
  }

  /** Every follow and unfollow of the edge that may have happened, by start. */
  changes(reader, author) {
    return this.#edges.get(edgeName(reader, author)) ?? [];
  }

  /** All edges that anybody has touched: [reader, author]. */
  all() {
    return [...this.#edges.keys()].map((name) => JSON.parse(name));
  }

  /** Whether the edge may have been on at some moment of [from, to]. */
  possiblyOn(reader, author, from, to) {
    const changes = this.changes(reader, author);
    return changes.some((follow) => {
      if (follow.op !== "follow" || follow.start > to) return false;
      const moment = Math.max(from, follow.start);
      return !changes.some((off) => isDone(off, "unfollow") && off.start > follow.end && off.end < moment);
    });
  }

  /** What the changes say of the edge in the end: true, false, or undefined if it may be either. */
  finally(reader, author) {
    const changes = this.changes(reader, author);
    const last = changes.filter((change) => !changes.some((later) => later.outcome === "done" && later.start > change.end));
    const ops = new Set(last.map(({ op }) => op));
    if (!last.some(({ outcome }) => outcome === "done")) return ops.has("follow") ? undefined : false;
    return ops.size > 1 ? undefined : ops.has("follow");
  }

  /**
   * When an edge that is on in the end was set on, at the earliest and at the latest: by any follow that no
   * unfollow has certainly come after.
   */
  setOn(reader, author) {
    const changes = this.changes(reader, author);
    const follows = changes.filter(
      (follow) => follow.op === "follow" && !changes.some((off) => isDone(off, "unfollow") && off.start > follow.end),
    );
    return {
      earliest: Math.min(...follows.map(({ start }) => start)),
      latest: Math.max(...follows.map(({ end }) => end)),
      lines: follows.flatMap(({ lines }) => lines),
    };
  }
}

const edgeName = (reader, author) => JSON.stringify([reader, author]);
const isDone = (change, op) => change.op === op && change.outcome === "done";
