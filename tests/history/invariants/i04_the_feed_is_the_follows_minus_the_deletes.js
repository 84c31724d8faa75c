// I4: after drain and sync, a device's view = items of current follows (with the backfill rule) minus deletes.
//
// Decides, for every feed that was walked in the end: all that must be there is there, pushed, pulled or
// addressed to the reader (so I13: by whatever door), nothing is there that may not be, each in a version that its
// edits allow, and called direct if it was addressed; and every app that stands at the head shows
// exactly that. Where the order of a follow and a publish is uncertain, either is right (expected.js).
// Cannot see: feeds that nobody read in the end.

import { expected, inEffect } from "../expected.js";
import { versions } from "../items.js";

export const name = "I4";

export function decide(history, judge) {
  for (const inbox of history.final.inboxes()) {
    const authors = inEffect(history, inbox.reader);
    if (authors === null) continue;
    const feed = history.final.feed(inbox);
    const lines = [...feed.lines, ...authors.lines];
    compare(judge, history, inbox, { shown: feed.items, lines, authors: authors.users });
    const views = history.final.views.filter((view) => view.reader === inbox.reader && view.feed === inbox.feed);
    for (const view of views) agrees(judge, view, feed);
  }
}

function compare(judge, history, inbox, { shown, lines, authors }) {
  const { reader } = inbox;
  const { must, may } = expected(history, inbox, authors);
  const held = new Map(shown.map((item) => [item.id, item]));
  for (const item of must.values()) {
    const because = item.readers ? `was addressed by ${item.author}` : `follows ${item.author}`;
    const why = () => `${reader} ${because} and does not see item ${item.id} (outbox_seq ${item.seq})`;
    judge.holds(held.has(item.id), () => [...item.lines, ...history.edges.setOn(reader, item.author).lines, ...lines], why);
  }
  for (const { id, author, version, direct = false } of shown) {
    const item = may.get(id);
    const known = history.items.get(id);
    const evidence = () => [...(known?.lines ?? []), ...(known?.deletes ?? []).flatMap((deleted) => deleted.lines), ...lines];
    judge.holds(item !== undefined, evidence, () => `${reader} sees item ${id} of ${author}, which must not be in ${inbox.feed}`);
    if (item === undefined) continue;
    const isDirect = item.readers !== undefined;
    judge.holds(direct === isDirect, evidence, () => `item ${id}, which is ${isDirect ? "" : "not "}addressed to ${reader}, is shown as if it were otherwise`);
    const { least, most } = versions(item);
    const why = () => `${reader} sees version ${version} of item ${id}, whose edits allow ${least} to ${most}`;
    judge.holds(version >= least && version <= most, () => [...evidence(), ...item.edits.flatMap((edit) => edit.lines)], why);
  }
}

function agrees(judge, view, feed) {
  const { position, items, reader, n } = view;
  const device = `${view.device} (${view.feed})`;
  const [shown, wants] = [items, feed.items].map((list) => list.map(({ id, version }) => `${id} v${version}`));
  const sameOrder = shown.join() === wants.join();
  const where = `${position?.epoch}:${position?.offset}`;
  const head = `${feed.position.epoch}:${feed.position.offset}`;
  judge.holds(where === head, [n, ...feed.lines], () => `${reader}'s device ${device} stands at ${where}, the log at ${head}`);
  const difference = () => `lacks ${some(without(wants, shown))} and shows ${some(without(shown, wants))} besides`;
  const why = () => `${reader}'s device ${device} at ${where} ${difference()}, or shows them in another order`;
  judge.holds(sameOrder, [n, ...feed.lines], why);
}

const without = (list, others) => list.filter((one) => !others.includes(one));

const some = (list) => (list.length === 0 ? "nothing" : `${list.length} items (${list.slice(0, 3).join(", ")}${list.length > 3 ? ", …" : ""})`);
