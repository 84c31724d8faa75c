// I5: no visible item of an author not followed, unless addressed to the reader.
//
// Decides: an item that a push, a `changes` answer or a page showed had an author whom the reader may have
// followed at some moment between its publish and that sight, or was addressed to the reader, and was shown in the
// feed that its kind belongs to; in the end, only such items and those of authors whom the reader follows are
// shown. A follow counts while no shield is up, and nothing is addressed through a block. A narrowed item is shown only
// to a reader who may be in its audience. Between an unfollow or a shield and its `forget` older items may still show, so
// before the end only items published since are decided.

import { inEffect } from "../expected.js";

export const name = "I5";

export function decide(history, judge) {
  const { logs, operations, final } = history;
  for (const log of logs.all()) {
    for (const { op, author, item, at, lines } of log.changes) {
      if (item !== undefined && op !== "delete") mayBeSeen(judge, history, log, { author, item, at, lines });
    }
  }
  // What may be seen at one moment may be seen later too. So of the pages with an item the first decides.
  const shown = new Map(); // reader and feed → item → when it was first on a page
  for (const { op, user, feed, outcome, answer, end, lines } of operations) {
    if (op !== "feed" || outcome !== "done") continue;
    if (!shown.has(`${user} ${feed}`)) shown.set(`${user} ${feed}`, new Map());
    const first = shown.get(`${user} ${feed}`);
    for (const { id, author } of answer.items) {
      if (first.get(id) <= end) continue;
      first.set(id, end);
      mayBeSeen(judge, history, { reader: user, feed }, { author, item: history.items.get(id), at: end, lines });
    }
  }
  for (const inbox of final.inboxes()) inTheEnd(judge, history, inbox);
}

function mayBeSeen(judge, { edges, audiences }, { reader, feed }, { author, item, at, lines }) {
  if (item === undefined) return; // nobody asked for it: I6
  const evidence = () => [...lines.slice(0, 2), ...item.lines, ...edges.changes(reader, author).flatMap((change) => change.lines)];
  const elsewhere = () => `${reader} was shown item ${item.id} of ${author} in ${feed}; its kind belongs to ${item.feed}`;
  judge.holds(item.feed === feed, [...lines.slice(0, 2), ...item.lines], elsewhere);
  if (item.readers) {
    const others = () => `${reader} was shown item ${item.id} of ${author}, which is addressed to ${[...item.readers]}`;
    judge.holds(item.readers.has(reader), [...lines.slice(0, 2), ...item.lines], others);
    const blocked = () => `${reader} was shown item ${item.id} of ${author}, which was addressed while one of them blocked the other`;
    judge.holds(!edges.surelyBlocked(reader, author, item.start, item.end), evidence, blocked);
    return;
  }
  const narrowed = () => `${reader} was shown item ${item.id} of ${author}, which is narrowed to others`;
  judge.holds(audiences.mayHave(item, reader), evidence, narrowed);
  const why = () => `${reader} was shown item ${item.id} of ${author}, whom ${reader} did not follow, or not without a shield, since it was published`;
  judge.holds(edges.possiblyOn(reader, author, item.start, at), evidence, why);
}

function inTheEnd(judge, history, { reader, feed: name }) {
  const { final, edges, items } = history;
  const authors = inEffect(history, reader);
  if (authors === null) return;
  const feed = final.feed({ reader, feed: name });
  for (const { id, author } of feed.items) {
    if (items.get(id)?.readers) continue; // see above
    const why = () => `in the end ${reader} sees item ${id} of ${author}, who is not followed, or is behind a shield`;
    const changes = () => [...edges.changes(reader, author).flatMap((change) => change.lines), ...feed.lines, ...authors.lines];
    judge.holds(authors.users.has(author), changes, why);
  }
}
