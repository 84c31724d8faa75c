// Whom an item that is narrowed is for: the followers of the moment at which it was accepted, but only those on its
// `lists`, if it names any, and none on its `except` lists. The set never changes afterwards.
//
// Who follows and who is on a list may change while the publish is under way. So a reader *may* be in the set, and is
// there *surely* only if no order of what overlaps leaves the reader out.

import { grouped } from "./collections.js";
import { Register } from "./register.js";

export class Audiences {
  #members = new Map(); // "[user, list, member]" → Register
  #edges;

  constructor(operations, edges) {
    this.#edges = edges;
    const changes = operations.filter(({ op, outcome }) => op === "list" && outcome !== "refused").map((change) => ({ ...change, value: change.on }));
    const places = grouped(changes, ({ user, list, member }) => placeOf(user, list, member));
    for (const [place, own] of places) this.#members.set(place, new Register(false, own));
  }

  /** Whether the item may be for the reader; each is for all followers if it is not narrowed. */
  mayHave(item, reader) {
    return this.#has(item, reader, { follows: "possiblyOn", named: (values) => values.has(true), spared: (values) => !values.has(false) });
  }

  /** Whether it is for the reader, whatever the order was. */
  surelyHas(item, reader) {
    return this.#has(item, reader, { follows: "surelyOn", named: (values) => !values.has(false), spared: (values) => values.has(true) });
  }

  /** `named` and `spared` get the values that a place on a list may have, and say whether the reader counts as on it. */
  #has({ author, narrowed, start, end }, reader, { follows, named, spared }) {
    if (narrowed === undefined) return true;
    const isOn = (holds) => (list) => holds(this.#members.get(placeOf(author, list, reader))?.possible(start, end) ?? new Set([false]));
    const isNamed = narrowed.lists.length === 0 || narrowed.lists.some(isOn(named));
    return isNamed && !narrowed.except.some(isOn(spared)) && this.#edges[follows](reader, author, start, end);
  }
}

const placeOf = (user, list, member) => JSON.stringify([user, list, member]);
