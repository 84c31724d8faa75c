// A register: it has one value at a time, and requests set it. This says which values it may have had, and when.
//
// Requests may overlap, and one without an answer may take effect at any time after it was asked. So a
// value is *possible* from the moment a request asked for it until another value has certainly replaced it: one that
// was certainly asked for later, and whose request was answered.

export class Register {
  #spans; // [{value, from, to, change}]: when each change, or the value before all of them, may have been in force

  /** `changes`: operations that were not refused, each with the `value` that it sets. */
  constructor(initial, changes) {
    this.changes = changes;
    const first = { value: initial, start: -Infinity, end: -Infinity };
    this.#spans = [first, ...changes].map((change) => ({ value: change.value, from: change.start, to: replaced(change, changes), change }));
  }

  /** The spans of time in which `value` may have been in force: [{from, to}]. */
  spans(value) {
    return this.#spans.filter((span) => span.value === value);
  }

  /** The values that were possible at some moment of [from, to]. */
  possible(from, to) {
    return new Set(this.#spans.filter((span) => span.from <= to && span.to >= from).map(({ value }) => value));
  }

  /** The values that are possible in the end. */
  finally() {
    return this.possible(Infinity, Infinity);
  }

  /**
   * When the value that is `value` in the end became so, at the earliest and at the latest; -Infinity: before all. To set
   * it again changes nothing: it is there for sure once no other value is possible any more.
   */
  became(value) {
    const last = this.spans(value).filter(({ to }) => to === Infinity);
    const others = this.#spans.filter((span) => span.value !== value);
    return {
      earliest: Math.min(...last.map(({ from }) => from)),
      latest: Math.min(Math.max(...others.map(({ to }) => to)), Math.max(...last.map(({ change }) => change.end))),
      lines: last.flatMap(({ change }) => change.lines ?? []),
    };
  }
}

/** The time from which on a change has certainly been replaced. */
function replaced(change, changes) {
  const later = changes.filter(({ value, outcome, start }) => outcome === "done" && value !== change.value && start > change.end);
  return Math.min(Infinity, ...later.map(({ end }) => end));
}
