//! The follow door: where to cut, then the edge and the outbox, then one step; for the main feed, then for the other.
//!
//! The list of feeds is read together with the edge for the main feed, and the event is finished up to the generation
//! that both feeds have. This is what a node does that knows of no other feed yet. A node that knows of both reads once
//! for both; even then each step compares what was read for its own inbox.

use feedgate_common::inboxes::EdgeStep;
use feedgate_common::rules::{brought, is_past, shown};
use feedgate_common::{Entry, FeedId, Record};

use crate::executor::cut_at;
use crate::inbox::Outcome;
use crate::state::{FollowWorker, State, Work, author_no, reader_no};
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
            FollowWorker::Served { .. } => actions.push(Action::FollowNext { slot }),
        }
    }
}

/// Reads where push and pull stand. (Two reads in the product; the step compares both, so when each was made is the
/// same.)
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, reader: usize, author: usize) {
    let feeds = if model.variant == Some(Variant::FeedsReadFirst) { state.truth.feeds } else { 0 };
    cut(model, state, slot, Work { log: reader as u8, author: author as u8, least: 0, feeds });
}

fn cut(model: &Fanout, state: &mut State, slot: usize, of: Work) {
    let author = usize::from(of.author);
    let pull = state.inbox(of.log.into()).map_or(0, |inbox| inbox.taken.pull);
    let early = model.variant == Some(Variant::BackfillBeforeTheEdge);
    let head = if early { state.truth.head(author) } else { 0 };
    let progress = state.store.progress[author];
    let building =
        model.variant == Some(Variant::BuildsLookedForFirst) && state.store.placeholders[usize::from(of.log)].epoch > 0;
    state.follow_workers[slot] = FollowWorker::Cut { of, progress, pull, head, building };
}

/// Reads the edge and the outbox, in one snapshot.
pub(crate) fn read(model: &Fanout, state: &mut State, slot: usize) {
    let FollowWorker::Cut { mut of, progress, pull, head, building } = state.follow_workers[slot] else { return };
    if model.variant != Some(Variant::FeedsReadFirst) {
        of.feeds = state.truth.feeds;
    }
    let (r, a) = (model.reader_of(of.log.into()), usize::from(of.author));
    let edge = state.truth.seen(r, a);
    let early = model.variant == Some(Variant::BackfillBeforeTheEdge);
    let head = if early { head } else { state.truth.head(a) };
    let by_counter = model.variant == Some(Variant::FollowStepByPushVerdict);
    let counter = if by_counter { state.truth.readers[r].counter } else { 0 };
    state.follow_workers[slot] = FollowWorker::Edge { of, progress, pull, head, edge, counter, building };
}

/// The step, and finishing the event; or only the step.
pub(crate) fn step(model: &Fanout, state: &mut State, slot: usize, crash: bool) {
    let FollowWorker::Edge { of: work, progress, pull, head, edge, counter, building } =
        std::mem::take(&mut state.follow_workers[slot])
    else {
        return;
    };
    let (log, of) = (usize::from(work.log), usize::from(work.author));
    let (reader, key) = (model.reader_of(log), model.key_of(log));
    let expected = FollowWorker::cut(progress, pull);
    let mut cut = FollowWorker::cut(cut_at(model, progress), pull);
    if model.variant == Some(Variant::FollowBringsNothingPulled) {
        cut.pull = 0;
    }
    let outbox = state.truth.records_of(model, of, key.feed, head);
    let past = |add: &_| is_past(cut, reader_no(reader), add, state.truth.pull_seq_of(of, add));
    let reached = |add: &Record| add.seq <= edge.from.into() || past(add);
    let door = (edge.door(), edge.door().from);
    let shown = match model.variant {
        Some(Variant::FollowIgnoresAudiences) => shown(&outbox, door, model.bounds.backfill, reached),
        _ => state.truth.to_bring(model, (reader, of), &outbox, door, reached),
    };
    let (adds, floor) = brought(shown, (edge.into(), edge.since.into()), model.bounds.backfill);
    let step = EdgeStep {
        key,
        author: author_no(of),
        generation: edge.generation.into(),
        on: edge.on,
        expected,
        adds: adds.iter().map(|add| Entry::of(add, author_no(of), edge.generation.into())).collect(),
        floor,
    };
    let outcome = match (state.step_edge(model, log, &step, counter.into()), model.variant) {
        (Outcome::Building, Some(Variant::StepsPassBuildsBy)) => Outcome::Done,
        (Outcome::Building, Some(Variant::BuildsLookedForFirst)) if !building => Outcome::Done,
        (outcome, _) => outcome,
    };
    if crash {
        return;
    }
    // With others in the step, each is taken in or not by itself, as here alone: steps that nothing comes between.
    let outcome = if model.variant == Some(Variant::FinishedThoughOvertaken) { Outcome::Done } else { outcome };
    let is_main = key.feed == FeedId::MAIN;
    let others = work.feeds > 1 && model.variant != Some(Variant::FinishedAfterTheMainFeed);
    match outcome {
        Outcome::Done if !is_main => finish(state, reader, of, work.least.min(edge.generation)),
        Outcome::Done if others => {
            let least = edge.generation;
            state.follow_workers[slot] = FollowWorker::Served { reader: reader as u8, author: work.author, least };
        }
        Outcome::Done => finish(state, reader, of, edge.generation),
        // The work goes on with this feed.
        Outcome::Again | Outcome::Building if !is_main => {
            let least = work.least;
            state.follow_workers[slot] = FollowWorker::Served { reader: reader as u8, author: work.author, least };
        }
        Outcome::Again | Outcome::Building => {}
    }
}

/// Goes on with the feed that has a name.
pub(crate) fn next(model: &Fanout, state: &mut State, slot: usize) {
    let FollowWorker::Served { reader, author, least } = std::mem::take(&mut state.follow_workers[slot]) else {
        return;
    };
    let log = model.log_of(reader.into(), FeedId(1)) as u8;
    cut(model, state, slot, Work { log, author, least, feeds: 0 });
}

fn finish(state: &mut State, reader: usize, author: usize, generation: u8) {
    let row = &mut state.truth.readers[reader].rows[author];
    row.finished = row.finished.max(generation);
}
