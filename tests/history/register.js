// A register: it has one value at a time, and requests set it. This says which values it may have had, and when.
//
// Requests may overlap, and one without an answer may take effect for a minute after it was asked. So a
// value is *possible* from the moment a request asked for it until another value has certainly replaced it: one that
// was certainly asked for later, and whose request was answered.

import { greatest, grouped, partitionPoint } from "./collections.js";

/**
 * How long a request without an answer may still take effect, in ms. The processes give up a call after seconds; what
 * hangs or holds bytes back in a test does so for 14 s at most. Without a bound, one such request would make its value
 * possible for the rest of a run of hours.
 */
const LATE_MS = 60_000;

/** The last moment at which a change may have taken effect. */
const endOf = ({ outcome, start, end }) => (outcome === "unknown" ? start + LATE_MS : end);

export class Register {
  #spans; // value → Spans: when each change to it, or the value before all of them, may have been in force

  /** `changes`: operations that were not refused, each with the `value` that it sets. */
  constructor(initial, changes) {
    this.changes = changes;
    const first = { value: initial, start: -Infinity, end: -Infinity };
    const replaced = replacements(changes);
    const spans = [first, ...changes].map((change) => ({ value: change.value, from: change.start, to: replaced(change), change }));
    this.#spans = new Map([...grouped(spans, ({ value }) => value)].map(([value, own]) => [value, new Spans(own)]));
  }

  /** The spans that reach into [from, to] in which `value` may have been in force, the latest first: {from, to}. */
  spans(value, from, to) {
    return this.#spans.get(value)?.within(from, to) ?? [];
  }

  /** The values that were possible at some moment of [from, to]. */
  possible(from, to) {
    return new Set([...this.#spans].filter(([, spans]) => spans.reach(from, to)).map(([value]) => value));
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
    const last = [...this.spans(value, Infinity, Infinity)];
    const others = [...this.#spans].filter(([other]) => other !== value).flatMap(([, { all }]) => all);
    return {
      earliest: Math.min(...last.map(({ from }) => from)),
      latest: Math.min(greatest(others.map(({ to }) => to), -Infinity), greatest(last.map(({ change }) => endOf(change)), -Infinity)),
      lines: last.flatMap(({ change }) => change.lines ?? []),
    };
  }
}

/** Spans of time that may overlap. */
class Spans {
  all;
  #until = []; // for each span, the latest end of it and of all before it

  constructor(spans) {
    this.all = spans.sort((a, b) => a.from - b.from);
    for (const { to } of this.all) this.#until.push(Math.max(to, this.#until.at(-1) ?? -Infinity));
  }

  /** Whether one of the spans reaches into [from, to]. */
  reach(from, to) {
    const until = this.#until[partitionPoint(this.all, (span) => span.from <= to) - 1];
    return until !== undefined && until >= from;
  }

  /** The spans that reach into [from, to], the latest first. */
  *within(from, to) {
    for (let i = partitionPoint(this.all, (span) => span.from <= to) - 1; i >= 0 && this.#until[i] >= from; i -= 1) {
      if (this.all[i].to >= from) yield this.all[i];
    }
  }
}

/** A function that gives the time from which on a change has certainly been replaced: Infinity if it has not. */
function replacements(changes) {
  const done = changes.filter(({ outcome }) => outcome === "done").sort((a, b) => a.start - b.start);
  const values = [...grouped(done, ({ value }) => value)].map(([value, own]) => {
    const soonest = own.map(({ end }) => end); // of each change and all that were asked for later, the first end
    for (let i = own.length - 2; i >= 0; i -= 1) soonest[i] = Math.min(soonest[i], soonest[i + 1]);
    return { value, own, soonest };
  });
  return (change) => {
    const others = values.filter(({ value }) => value !== change.value);
    const end = endOf(change);
    return Math.min(...others.map(({ own, soonest }) => soonest[partitionPoint(own, ({ start }) => start <= end)] ?? Infinity));
  };
}
