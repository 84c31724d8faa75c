// I1: sequence ids are dense from 1 within an epoch.
//
// Decides: in items mode the pushes of a subscription begin right after its position and have no gap; a
// `changes` or `history` answer begins right after what was asked for and has no gap; in notify mode the
// offsets rise. Cannot see: offsets that nobody read, such as those of a reader who was never online.

export const name = "I1";

export function decide({ connections, operations }, judge) {
  for (const { subscriptions, histories } of connections) {
    for (const { deliver, offset, pushes, lines } of subscriptions) {
      const what = `the pushes of a subscription from ${offset}`;
      if (deliver === "items") dense(judge, offset, pushes, lines, what);
      else rising(judge, offset, pushes, lines, what);
    }
    for (const { since, reverse, reply, lines } of histories) {
      const publications = (reply.publications ?? []).map((publication) => ({ ...publication, n: lines[1] }));
      if (since && !reverse) dense(judge, since.offset, publications, lines, `a history since ${since.offset}`);
    }
  }
  for (const { op, outcome, query, answer, lines } of operations) {
    if (op !== "changes" || outcome !== "done") continue;
    const after = Number(query.offset ?? 0);
    const changes = answer.changes.map((change) => ({ ...change, n: lines[1] }));
    dense(judge, after, changes, lines, `the changes after ${after}`);
    const reached = after + changes.length;
    judge.holds(answer.position.offset === reached, lines, () => `changes after ${after} end at ${reached}, and say ${answer.position.offset}`);
  }
}

function dense(judge, before, changes, lines, what) {
  let [last, line] = [before, lines.at(-1)];
  for (const { offset, n } of changes) {
    const wants = last + 1;
    judge.holds(offset === wants, [line, n], () => `${what}: ${wants} should come, not ${offset}`);
    [last, line] = [offset, n];
  }
}

function rising(judge, before, pushes, lines, what) {
  let [last, line] = [before, lines.at(-1)];
  for (const { offset, n } of pushes) {
    const above = last;
    judge.holds(offset > above, [line, n], () => `${what}: more than ${above} should come, not ${offset}`);
    [last, line] = [offset, n];
  }
}
