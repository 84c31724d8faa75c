// I15: merged follow operations = unmerged final state.
//
// Decides, for each edge that changed more than once and each feed: the whole log, replayed in the end, shows of that
// author what the edge's last state says, with the backfill rule (I4 says the same of pages); and a log has
// no more forgets of an author than the edge had changes. Cannot see: logs that were cut or not read.

import { followed, inEffect } from "../expected.js";
import { replay } from "../final.js";

export const name = "I15";

export function decide(history, judge) {
  for (const [reader, author] of history.edges.all()) {
    for (const feed of history.feeds) decideOne(history, judge, { reader, feed }, author);
  }
}

function decideOne(history, judge, inbox, author) {
  const { edges, final, run } = history;
  const { reader } = inbox;
  const changes = edges.changes(reader, author);
  const lines = changes.flatMap((change) => change.lines);
  notTooManyForgets(judge, history, inbox, { author, most: changes.length, lines });
  const [log, authors] = [final.log(inbox), inEffect(history, reader)];
  if (changes.length < 2 || log === null || authors === null || log.changes.length >= run.keep) return;
  const shown = replay(log.changes).filter((item) => item.author === author && !item.direct);
  const { must, may } = followed(history, inbox, authors.users.has(author) ? [author] : []);
  const missing = [...must.values()].filter(({ id }) => !shown.some((item) => item.id === id));
  const extra = shown.filter(({ id }) => !may.has(id));
  const state = authors.users.has(author) ? "sees" : "does not see";
  const [lacks, shows] = [missing, extra].map((items) => items.map(({ id }) => id));
  const why = () => `after ${changes.length} changes ${reader} ${state} ${author}; the log of ${inbox.feed} lacks [${lacks}] and shows [${shows}] too much`;
  judge.holds(missing.length + extra.length === 0, [...lines, ...log.lines], why);
}

function notTooManyForgets(judge, { logs }, inbox, { author, most, lines }) {
  for (const { name, changes } of logs.of(inbox)) {
    const forgets = changes.filter((change) => change.op === "forget" && change.author === author);
    if (forgets.length === 0) continue;
    const why = () => `${name} forgets ${author} ${forgets.length} times; the edge changed at most ${most} times`;
    judge.holds(forgets.length <= most, [...lines, ...forgets.flatMap((forget) => forget.lines)], why);
  }
}
