// Random choices that a seed repeats (mulberry32).

export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A random number of at least 0 and below 1. */
  fraction() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number of [least, below). */
  between(least, below) {
    return least + Math.floor(this.fraction() * (below - least));
  }

  /** Picks one element of `list`. */
  pick(list) {
    return list[this.between(0, list.length)];
  }

  /** True in `percent` of all cases. */
  chance(percent) {
    return this.fraction() * 100 < percent;
  }

  /** Another sequence of its own, for another actor. */
  branch() {
    return new Random(this.between(0, 2 ** 32));
  }
}
