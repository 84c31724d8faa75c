// I8: `next: null` is the end of the pages and nothing else is.
//
// Decides, for every page, profile page and list of follows or shields: fewer lines than asked come without a `next`,
// unless their bodies fill the answer, and never more than asked; and a `changes` answer without a change is at the head.
// That nothing lies beyond the end is I4's to say.

export const name = "I8";

const DEFAULT_LIMITS = { feed: 20, outbox: 20, following: 100, muted: 100, hidden: 100, blocked: 100 };

/** An answer ends once its bodies hold so many bytes. */
const FULL_BYTES = 1024 * 1024;

const isFull = (items = []) => items.reduce((bytes, { body }) => bytes + Buffer.byteLength(JSON.stringify(body)), 0) >= FULL_BYTES;

export function decide({ operations }, judge) {
  for (const { op, outcome, user, query, answer, lines } of operations) {
    if (outcome !== "done") continue;
    if (op in DEFAULT_LIMITS) {
      const limit = Number(query.limit ?? DEFAULT_LIMITS[op]);
      const { length } = answer.items ?? answer.users;
      judge.holds(length <= limit, lines, () => `${user}'s page of ${op} has ${length} lines; ${limit} were asked for`);
      judge.holds(length === limit || answer.next === null || isFull(answer.items), lines, () => `${user}'s page of ${op} has ${length} of ${limit} lines and goes on`);
    }
    if (op === "changes" && answer.changes.length === 0) {
      const { position, head } = answer;
      judge.holds(position.offset === head, lines, () => `no changes of ${user} after ${position.offset}, and the head is ${head}`);
    }
  }
}
