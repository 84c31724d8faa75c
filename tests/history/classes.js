// The route of each item, as far as it is certain. The author's class when the item is accepted decides, and no later
// class.

import { grouped } from "./collections.js";
import { Register } from "./register.js";

export class Classes {
  #classes = new Map();
  #run;
  #edges;

  constructor(operations, edges, run) {
    this.#edges = edges;
    this.#run = run;
    const changes = operations.filter(({ op, outcome }) => op === "classify" && outcome !== "refused").map((change) => ({ ...change, value: change.class }));
    for (const [author, own] of grouped(changes, ({ author }) => author)) this.#classes.set(author, new Register("auto", own));
  }

  /**
   * The door that an item takes: "push", "pull", or "direct" if it is addressed; undefined if it is not certain. A
   * narrowed item is pushed, whatever the class of its author is.
   */
  route({ author, readers, narrowed, start, end }) {
    if (readers) return "direct";
    if (narrowed) return "push";
    const possible = this.#classes.get(author)?.possible(start, end) ?? new Set(["auto"]);
    const routes = new Set([...possible].map((name) => this.#routeOf(name, author)));
    return routes.size === 1 ? [...routes][0] : undefined;
  }

  /** The number of followers that an author of class auto is measured by may be a little behind. */
  #routeOf(name, author) {
    if (name === "everyone") return "pull";
    if (name !== "auto") return name;
    return this.#edges.neighbours(author).length > this.#run.pull_above ? undefined : "push";
  }
}
