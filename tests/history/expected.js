// What a reader's feed has to hold in the end, and what it may hold: the rule of follows and deletes.
//
// A feed holds what is addressed to its reader and lives, and the living items of followed authors: those published after the follow, and of those before
// it the ones among the author's newest `backfill` by outbox order that had not been deleted by then.
// Where the order of a follow, a publish and a delete is not certain, an item *may* be there.

import { isAccepted, maybeDeleted, surelyDeleted } from "./items.js";

/** {must: Map id → item, may: Map id → item}; `must` is part of `may`. `authors`: whom the reader follows in the end. */
export function expected(history, { reader, feed }, authors) {
  const { must, may } = followed(history, { reader, feed }, authors);
  for (const item of history.items.addressed(reader, feed)) {
    if (!surelyDeleted(item)) may.set(item.id, item);
    if (isAccepted(item) && !maybeDeleted(item)) must.set(item.id, item);
  }
  return { must, may };
}

/** The same, without what is addressed. */
export function followed(history, { reader, feed }, authors) {
  const [must, may] = [new Map(), new Map()];
  for (const author of authors) {
    const since = history.edges.setOn(reader, author);
    const all = history.items.of(author, feed);
    const newest = newestCounts(all, history.items.unseen(author, feed), since);
    for (const item of all) {
      if (surelyDeleted(item)) continue;
      const { least, most } = newest(item);
      if (!(item.end < since.earliest && least >= history.run.backfill)) may.set(item.id, item);
      const reached = item.start > since.latest || most < history.run.backfill;
      if (isAccepted(item) && !maybeDeleted(item) && reached) must.set(item.id, item);
    }
  }
  return { must, may };
}

/** For an item: how many newer adds of its author and feed stood in the outbox at the follow, at least and at most. */
function newestCounts(all, unseen, { earliest, latest }) {
  const lower = all.filter((other) => other.end < earliest && !maybeDeleted(other, latest));
  const upper = all.filter((other) => other.start < latest && !surelyDeleted(other, earliest));
  const strangers = unseen.filter(({ publishes }) => publishes.some(({ start }) => start < latest)).length;
  const isNewer = (other, item) => other !== item && (other.seq === undefined || item.seq === undefined || other.seq > item.seq);
  const isSurelyNewer = (other, item) => other.seq !== undefined && item.seq !== undefined && other.seq > item.seq;
  return (item) => ({
    least: lower.filter((other) => isSurelyNewer(other, item)).length,
    most: upper.filter((other) => isNewer(other, item)).length + strangers,
  });
}
