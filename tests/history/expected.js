// What a reader's feed has to hold in the end, and what it may hold: the rule of follows and deletes.
//
// A feed holds what lives of what was addressed to its reader while neither blocked the other, and the living items of
// authors whom the reader follows with no shield between them: those published since that is so, and of those before it
// the ones among the author's newest `backfill` by outbox order that had not been deleted by then. An author whom
// everyone follows brings nothing from before. An item that is narrowed counts among the newest, and is there only for
// whom it is. Where the order of a follow, a publish and a delete is not certain, an
// item *may* be there.
//
// Three more places compute what a feed holds; CONTRIBUTING.md lists them. This one is independent on purpose: it knows
// only what clients saw over HTTP while calls overlapped and processes died. So it has no order of all writes, and
// answers two sets instead of one feed.

import { partitionPoint } from "./collections.js";
import { isAccepted, maybeDeleted, surelyDeleted } from "./items.js";

/** {must: Map id → item, may: Map id → item}; `must` is part of `may`. `authors`: whose items the reader sees in the end. */
export function expected(history, { reader, feed }, authors) {
  const { must, may } = followed(history, { reader, feed }, authors);
  for (const item of history.items.addressed(reader, feed)) {
    const edge = [reader, item.author, item.start, item.end];
    if (!surelyDeleted(item) && !history.edges.surelyBlocked(...edge)) may.set(item.id, item);
    if (isAccepted(item) && !maybeDeleted(item) && !history.edges.possiblyBlocked(...edge)) must.set(item.id, item);
  }
  return { must, may };
}

/** {must, may} as [`expected`] gives them, without the items that are addressed to the reader. */
export function followed(history, { reader, feed }, authors) {
  const [must, may] = [new Map(), new Map()];
  for (const author of authors) {
    const since = history.edges.setOn(reader, author);
    const backfill = since.brings ? history.run.backfill : 0;
    const all = history.items.of(author, feed);
    const newest = newestCounts(all, history.items.unseen(author, feed), since);
    for (const item of all) {
      if (surelyDeleted(item) || !history.audiences.mayHave(item, reader)) continue;
      const { least, most } = newest(item);
      if (!(item.end < since.earliest && least >= backfill)) may.set(item.id, item);
      const reached = item.start > since.latest || most < backfill;
      if (isAccepted(item) && !maybeDeleted(item) && reached && history.audiences.surelyHas(item, reader)) must.set(item.id, item);
    }
  }
  return { must, may };
}

/** For an item: how many newer adds of its author and feed stood in the outbox at the follow, at least and at most. */
function newestCounts(all, unseen, { earliest, latest }) {
  const lower = new Outbox(all.filter((other) => other.end < earliest && !maybeDeleted(other, latest)));
  const upper = new Outbox(all.filter((other) => other.start < latest && !surelyDeleted(other, earliest)));
  const strangers = unseen.filter(({ publishes }) => publishes.some(({ start }) => start < latest)).length;
  return (item) => ({ least: lower.surelyAbove(item), most: upper.possiblyAbove(item) + strangers });
}

/** Items by their outbox order, as far as it is known. */
class Outbox {
  #items;
  #seqs;

  constructor(items) {
    this.#items = new Set(items);
    this.#seqs = items.map(({ seq }) => seq).filter((seq) => seq !== undefined).sort((a, b) => a - b);
  }

  /** How many are surely newer than the item. */
  surelyAbove({ seq }) {
    return seq === undefined ? 0 : this.#seqs.length - partitionPoint(this.#seqs, (other) => other <= seq);
  }

  /** How many others may be newer than the item. */
  possiblyAbove(item) {
    if (item.seq === undefined) return this.#items.size - (this.#items.has(item) ? 1 : 0);
    return this.surelyAbove(item) + this.#items.size - this.#seqs.length;
  }
}

/** Whose items the reader sees in the end, by the lists: {users: Set, lines}; null if the reader's follows were not read. */
export function inEffect({ final, edges }, reader) {
  const following = final.list("following", reader);
  if (following === null) return null;
  const everyones = edges.everyones().filter((author) => edges.finally(reader, author, "follows"));
  const authors = new Set([...following.users, ...everyones]);
  const { users, lines } = final.shields(reader, authors);
  return { users: new Set([...authors].filter((author) => !users.has(author))), lines: [...following.lines, ...lines] };
}
