// The log of one reader's inbox as the gateway has it: its newest changes, and where it ends.

import { Refused } from "./backend.js";

const GONE = 410;

/** How many of the newest changes are kept here. */
export const KEPT = 60;

export class Log {
  /** Changes in order, without a gap: {offset, op, item} or {offset, op, item_id} or {offset, op, author}. */
  changes = [];
  epoch = null;
  head = 0;
  #reading = null;

  constructor(backend, user) {
    Object.assign(this, { backend, user });
  }

  /** Takes in a change that a phone has got, unless others before it are missing here. */
  extend(change) {
    if (this.epoch === null || change.offset !== this.head + 1) return;
    this.changes = [...this.changes, change].slice(-KEPT);
    this.head = change.offset;
  }

  /** Reads what has been appended since; reads that overlap are one read. */
  read() {
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #read() {
    try {
      await this.#after(this.epoch === null ? await this.#start() : { epoch: this.epoch, offset: this.head });
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== GONE) throw error;
      // The log was cut off or built anew: it is read from its first change.
      Object.assign(this, { changes: [], epoch: null, head: 0 });
      await this.#after(null);
    }
  }

  /** The position before the newest changes. */
  async #start() {
    const { position } = await this.backend.call("GET", `/v1/users/${this.user}/feed?limit=1`);
    return { ...position, offset: Math.max(0, position.offset - KEPT) };
  }

  async #after(position) {
    const from = position === null ? "" : `&${new URLSearchParams(position)}`;
    const { changes, position: reached, head } = await this.backend.call("GET", `/v1/users/${this.user}/changes?limit=1000${from}`);
    const newer = changes.filter(({ offset }) => offset > this.head);
    this.changes = [...this.changes, ...newer].slice(-KEPT);
    this.epoch = reached.epoch;
    this.head = Math.max(this.head, reached.offset);
    if (this.head < head && changes.length > 0) await this.#after({ epoch: this.epoch, offset: this.head });
  }
}
