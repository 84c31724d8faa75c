// I6: accepted ⇒ in the outbox after any crash; a retry with the same idempotency key gets the same item.
//
// Decides: every item answered with 2xx and not deleted is on its author's profile in the end, a deleted
// one is not, nor one that is addressed to readers (those have it: I4); answers of one key name one item, and no two
// keys share an id or an outbox_seq; the numbers of an outbox leave no more room than its records take; nothing
// is shown that nobody asked for; follows and shields are in the end as the answers say. Cannot see: bytes on the disk (tests/trace does).

import { isAccepted, maybeDeleted, surelyDeleted, versions } from "../items.js";

export const name = "I6";

export function decide(history, judge) {
  retriesAgree(history.items.groups(), judge);
  numbersAreUnique(history.items, judge);
  for (const { item, n } of history.items.unasked) {
    judge.holds(false, [n], () => `item ${item.id} of ${item.author} was shown, and nobody had published it`);
  }
  for (const of of history.final.profiles()) profile(judge, history, of);
  for (const author of new Set(history.final.profiles().map((of) => of.author))) noHole(judge, history, author);
  for (const what of LISTS) for (const user of history.final.listing(what.list)) listed(judge, history, user, what);
}

function retriesAgree(groups, judge) {
  for (const { publishes } of groups) {
    const answers = publishes.filter(({ outcome }) => outcome === "done");
    const names = new Set(answers.map(({ answer }) => `${answer.id} (outbox_seq ${answer.outbox_seq})`));
    if (answers.length === 0) continue;
    const why = () => `key ${answers[0].key} was answered with several items: ${[...names].join(", ")}`;
    judge.holds(names.size === 1, answers.flatMap(({ lines }) => lines), why);
  }
}

function numbersAreUnique(items, judge) {
  const [ids, places] = [new Map(), new Map()];
  for (const { publishes } of items.groups()) {
    const done = publishes.find(({ outcome }) => outcome === "done");
    if (done === undefined) continue;
    const { id, outbox_seq: seq } = done.answer;
    for (const [taken, name, what] of [[ids, id, `id ${id}`], [places, `${done.author} ${seq}`, `outbox_seq ${seq} of ${done.author}`]]) {
      if (taken === places && done.readers) continue;
      judge.holds(!taken.has(name), [...done.lines, ...(taken.get(name)?.lines ?? [])], () => `${what} was given to two items`);
      taken.set(name, done);
    }
  }
}

function profile(judge, history, { author, feed }) {
  const { items, lines } = history.final.outbox({ author, feed });
  const held = new Map(items.map((item) => [item.id, item]));
  const own = history.items.of(author, feed);
  for (const { id } of items) {
    const item = history.items.get(id);
    const why = () => `item ${id} of ${author} is addressed to ${[...item.readers]}, and on the profile`;
    judge.holds(!item?.readers, [...(item?.lines ?? []), ...lines], why);
    const elsewhere = () => `item ${id} of ${author} is on the profile of ${feed}; its kind belongs to ${item.feed}`;
    if (item) judge.holds(item.feed === feed, [...item.lines, ...lines], elsewhere);
  }
  for (const item of own) {
    const deletes = item.deletes.flatMap((deleted) => deleted.lines);
    if (isAccepted(item) && !maybeDeleted(item)) {
      judge.holds(held.has(item.id), [...item.lines, ...lines], () => `item ${item.id} of ${author} was accepted and is not in the outbox`);
    }
    if (surelyDeleted(item)) {
      judge.holds(!held.has(item.id), [...deletes, ...lines], () => `item ${item.id} of ${author} was deleted and is still in the outbox`);
    }
    if (held.has(item.id)) {
      const { least, most } = versions(item);
      const { version } = held.get(item.id);
      const edits = item.edits.flatMap((edit) => edit.lines);
      const why = () => `item ${item.id} has version ${version}; its edits allow ${least} to ${most}`;
      judge.holds(version >= least && version <= most, [...edits, ...lines], why);
    }
  }
}

/** Checks that an outbox, which has the records of all feeds, has no hole. */
function noHole(judge, history, author) {
  const own = history.items.of(author);
  const last = Math.max(0, ...own.map(({ seq }) => seq ?? 0));
  const records = own.length + history.items.unseen(author).length + own.flatMap(({ edits, deletes }) => [...edits, ...deletes]).length;
  judge.holds(last <= records, own.at(-1)?.lines ?? [], () => `${author}'s outbox has reached ${last}, with at most ${records} records`);
}

/** Each line of these lists is one bit of an edge: set if the reader follows, and clear if there is a shield. */
const LISTS = [
  { list: "following", bit: "follows", when: true, edge: (user, other) => [user, other] },
  { list: "muted", bit: "muted", when: false, edge: (user, other) => [user, other] },
  { list: "blocked", bit: "blocked", when: false, edge: (user, other) => [user, other] },
  { list: "hidden", bit: "hidden", when: false, edge: (user, other) => [other, user] },
];

function listed(judge, { final, edges }, user, { list, bit, when, edge }) {
  const { users, lines } = final.list(list, user);
  for (const other of new Set([...edges.neighbours(user), ...users])) {
    const value = edges.finally(...edge(user, other), bit);
    if (value === undefined) continue;
    const evidence = [...edges.changes(...edge(user, other)).flatMap((change) => change.lines), ...lines];
    const why = () => `the answers say that ${user} has ${other} ${value === when ? "" : "not "}in the list ${list}; the list says otherwise`;
    judge.holds(users.has(other) === (value === when), evidence, why);
  }
}
