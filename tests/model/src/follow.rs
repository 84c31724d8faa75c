//! The follow door: where to cut, then the edge and the outbox, then one step.

use feedgate_common::inboxes::EdgeStep;
use feedgate_common::rules::{is_past, shown};
use feedgate_common::{Entry, InboxKey, Record};

use crate::executor::cut_at;
use crate::inbox::Outcome;
use crate::state::{FollowWorker, State, author_no, reader_no};
use crate::variants::Variant;
use crate::{Action, Fanout};

/// What follow workers can do next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    for (slot, worker) in Fanout::distinct(&state.follow_workers[..model.bounds.follow_workers]) {
        match worker {
            FollowWorker::Idle => {
                for (reader, author) in model.pairs() {
                    let row = state.truth.readers[reader].rows[author];
                    if row.finished < row.generation {
                        actions.push(Action::FollowBegin { slot, reader, author });
                    }
                }
            }
            FollowWorker::Cut { .. } => actions.push(Action::FollowRead { slot }),
            FollowWorker::Edge { .. } => actions.push(Action::FollowStep { slot, crash: false }),
        }
    }
}

/// Reads where push and pull stand. (Two reads in the product; the step compares both, so when each was made is the same.)
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, reader: usize, author: usize) {
    let pull = state.inbox(reader).map_or(0, |inbox| inbox.taken.pull);
    let early = model.variant == Some(Variant::BackfillBeforeTheEdge);
    let head = if early { state.truth.head(author) } else { 0 };
    let progress = state.store.progress[author];
    state.follow_workers[slot] = FollowWorker::Cut { reader: reader as u8, author: author as u8, progress, pull, head };
}

/// Reads the edge and the outbox, in one snapshot.
pub(crate) fn read(model: &Fanout, state: &mut State, slot: usize) {
    let FollowWorker::Cut { reader, author, progress, pull, head } = state.follow_workers[slot] else { return };
    let (r, a) = (usize::from(reader), usize::from(author));
    let edge = state.truth.seen(r, a);
    let early = model.variant == Some(Variant::BackfillBeforeTheEdge);
    let head = if early { head } else { state.truth.head(a) };
    let by_counter = model.variant == Some(Variant::FollowStepByPushVerdict);
    let counter = if by_counter { state.truth.readers[r].counter } else { 0 };
    state.follow_workers[slot] = FollowWorker::Edge { reader, author, progress, pull, head, edge, counter };
}

/// The step, and finishing the event; or only the step.
pub(crate) fn step(model: &Fanout, state: &mut State, slot: usize, crash: bool) {
    let FollowWorker::Edge { reader, author, progress, pull, head, edge, counter } =
        std::mem::take(&mut state.follow_workers[slot])
    else {
        return;
    };
    let (reader, of) = (usize::from(reader), usize::from(author));
    let expected = FollowWorker::cut(progress, pull);
    let mut cut = FollowWorker::cut(cut_at(model, progress), pull);
    if model.variant == Some(Variant::FollowBringsNothingPulled) {
        cut.pull = 0;
    }
    let outbox = state.truth.records(model, of, head);
    let past = |add: &_| is_past(cut, reader_no(reader), add, state.truth.pull_seq_of(of, add));
    let reached = |add: &Record| add.seq <= edge.from.into() || past(add);
    let adds = shown(&outbox, edge.door(), model.bounds.backfill, reached);
    let step = EdgeStep {
        key: InboxKey::main(reader_no(reader)),
        author: author_no(of),
        generation: edge.generation.into(),
        on: edge.on,
        expected,
        adds: adds.iter().map(|add| Entry::of(add, author_no(of), edge.generation.into())).collect(),
    };
    let outcome = state.step_edge(model, reader, &step, counter.into());
    if outcome == Outcome::Done && !crash {
        let row = &mut state.truth.readers[reader].rows[of];
        row.finished = row.finished.max(edge.generation);
    }
}
