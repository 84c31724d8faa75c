//! The push door: progress and records, then recipients, then one step; and the events that make it happen.
//!
//! A crash between any two of these leaves nothing behind but the job, which comes again: any idle worker may take it.

use feedgate_common::change::Route;
use feedgate_common::{Bucket, Op};
use feedgate_timeline::fanout::plan;

use crate::inbox::Outcome;
use crate::state::{Executor, LOGS, READERS, Reached, Reopened, State, To, author_no, reader_no};
use crate::variants::Variant;
use crate::{Action, Fanout};

/// What executors can do next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    for (slot, executor) in Fanout::distinct(&state.executors[..model.bounds.executors]) {
        match executor {
            Executor::Idle => {
                let authors = (0..model.bounds.authors).filter(|author| is_due(model, state, *author));
                actions.extend(authors.clone().map(|author| Action::PushBegin { slot, author }));
                let unasked = authors.filter(|author| may_begin_unasked(model, state, *author));
                actions.extend(unasked.map(|author| Action::PushBeginUnasked { slot, author }));
            }
            Executor::Holding { author, .. } => actions.push(Action::PushBegin { slot, author: usize::from(*author) }),
            Executor::Records { author, .. } => {
                actions.push(Action::PushRecipients { slot });
                if are_kept(model, state, usize::from(*author)) {
                    actions.push(Action::PushRecipientsKept { slot });
                }
            }
            Executor::Recipients { .. } => actions.push(Action::PushStep { slot }),
            Executor::AtHead { .. } => actions.push(Action::PushFinish { slot }),
            Executor::Filling { .. } => actions.push(Action::PushFill { slot }),
        }
    }
}

/// Whether there is a job for `author`. Events only matter where progress can go back; elsewhere there is one as long
/// as there is something to do.
fn is_due(model: &Fanout, state: &State, author: usize) -> bool {
    let head = state.truth.head(author);
    if model.tracks_events() {
        let author = &state.truth.authors[author];
        author.job || author.finished < head || author.reopened != Reopened::No
    } else {
        state.store.progress[author].done < head
    }
}

/// Whether a worker may begin where the author's events are finished. It is known how far that is, and there is more.
fn may_begin_unasked(model: &Fanout, state: &State, author: usize) -> bool {
    let of = &state.truth.authors[author];
    model.bounds.unasked && of.reopened == Reopened::No && of.finished < state.truth.head(author)
}

/// Reads the records after those that are finished, where the progress stands if nothing was lost.
pub(crate) fn begin_unasked(model: &Fanout, state: &mut State, slot: usize, author: usize) {
    let expected = Reached::at(state.truth.authors[author].finished);
    begin_at(model, state, slot, author, expected);
}

/// Reads the progress and the records after it. Where there is none, that is the first record. (Records read later
/// would be read after the same progress, or for nothing.)
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, author: usize) {
    let head = state.truth.head(author);
    let lost = state.spent.rollbacks > 0 && state.store.progress[author] == Reached::default();
    if lost && model.variant == Some(Variant::StartsAtTheHead) {
        state.store.progress[author] = Reached::at(head);
    }
    let told = matches!(state.executors[slot], Executor::Holding { told: true, .. });
    let unasked = told && model.variant == Some(Variant::UnaskedThoughReopened);
    let finished = Reached::at(state.truth.authors[author].finished);
    let expected = if unasked { finished } else { state.store.progress[author] };
    begin_at(model, state, slot, author, expected);
}

fn begin_at(model: &Fanout, state: &mut State, slot: usize, author: usize, expected: Reached) {
    let head = state.truth.head(author);
    if model.tracks_events() && !state.truth.authors[author].job {
        state.truth.authors[author].job = true;
    }
    if model.variant == Some(Variant::OutstandingUntilRelayed) {
        let of = &mut state.truth.authors[author];
        (of.finished, of.job) = (head, false);
    }
    let told = matches!(state.executors[slot], Executor::Holding { told: true, .. });
    state.executors[slot] = if expected.done < head {
        Executor::Records { author: author as u8, told, expected, head }
    } else {
        Executor::AtHead { author: author as u8, told, upto: head }
    };
}

/// The followers of an author with their edges and counters: those who hold a row that is in effect.
fn followers(model: &Fanout, state: &State, author: usize) -> [Option<To>; READERS] {
    std::array::from_fn(|reader| {
        let edge = state.truth.edge(reader, author);
        let follows = reader < model.bounds.readers && state.truth.readers[reader].rows[author].held && edge.on;
        let counter = state.truth.readers[reader].counter;
        let (generation, from) = (edge.generation as u8, edge.from as u8);
        follows.then_some(To { generation, from, counter, active: false })
    })
}

/// Whether the followers of an author are kept, and none of their edges has changed since they were read.
fn are_kept(model: &Fanout, state: &State, author: usize) -> bool {
    let edges = |of: [Option<To>; READERS]| of.map(|to| to.map(|to| (to.generation, to.from)));
    let unchanged = |kept| edges(kept) == edges(followers(model, state, author));
    state.kept[author].is_some_and(|kept| unchanged(kept) || model.variant == Some(Variant::KeptThoughChanged))
}

/// Reads the recipients after the records.
pub(crate) fn recipients(model: &Fanout, state: &mut State, slot: usize) {
    let Executor::Records { author, .. } = state.executors[slot] else { return };
    let read = followers(model, state, author.into());
    if model.bounds.keeps {
        state.kept[usize::from(author)] = Some(read);
    }
    recipients_among(model, state, slot, (read, false));
}

/// Takes the recipients among the followers that are kept. Their counters may be older than the records.
pub(crate) fn recipients_kept(model: &Fanout, state: &mut State, slot: usize) {
    let Executor::Records { author, .. } = state.executors[slot] else { return };
    let Some(kept) = state.kept[usize::from(author)] else { return };
    recipients_among(model, state, slot, (kept, true));
}

fn recipients_among(model: &Fanout, state: &mut State, slot: usize, (all, kept): ([Option<To>; READERS], bool)) {
    let Executor::Records { author, told, expected, head } = state.executors[slot] else { return };
    let of = usize::from(author);
    let mut to = [None; READERS];
    let first = state.truth.records(model, of, head)[usize::from(expected.done)];
    if first.route != Route::Pull || expected.last > 0 {
        let mut room = model.bounds.step.recipients;
        for (reader, follower) in all.into_iter().enumerate() {
            let own = model.is_own(reader, of) && model.variant != Some(Variant::OwnIsLeftOut);
            let ahead = reader_no(reader).0 > expected.last.into();
            if let Some(follower) = follower
                && ahead
                && room > 0
                && state.truth.is_for((reader, of), own, &first)
            {
                room -= 1;
                let seen = || state.inbox(model.log_of(reader, first.feed)).is_some();
                to[reader] = Some(To { active: model.variant == Some(Variant::StaleActivity) && seen(), ..follower });
            }
        }
    }
    state.executors[slot] = Executor::Recipients { author, told, expected, head, to, kept };
}

/// Takes the push step, as `Inboxes::advance` does.
pub(crate) fn step(model: &Fanout, state: &mut State, slot: usize) {
    let Executor::Recipients { author, told, expected, head, mut to, kept } = state.executors[slot] else { return };
    let of = usize::from(author);
    if model.variant == Some(Variant::CounterAfterEdges) {
        for (to, reader) in to.iter_mut().zip(&state.truth.readers) {
            to.iter_mut().for_each(|to| to.counter = reader.counter);
        }
    }
    let records = state.truth.records(model, of, head);
    let recipients = (0..READERS).filter_map(|reader| Some(to[reader]?.recipient(reader))).collect();
    let mut ahead = records[usize::from(expected.done)..].to_vec();
    let feed = ahead[0].feed;
    let other_feeds: Vec<u64> = ahead.iter().filter(|record| record.feed != feed).map(|record| record.seq).collect();
    if matches!(model.variant, Some(Variant::StepMixesFeeds | Variant::StepLeavesFeedsOut)) {
        ahead.iter_mut().for_each(|record| record.feed = feed);
    }
    if model.variant == Some(Variant::NarrowedGoAlong) {
        ahead.iter_mut().filter(|record| record.route == Route::Narrow).for_each(|record| record.route = Route::Push);
    }
    let mut step = plan((author_no(of), Bucket(0)), expected.into(), &ahead, recipients, model.bounds.step);
    if model.variant == Some(Variant::StepLeavesFeedsOut) {
        step.records.retain(|record| !other_feeds.contains(&record.seq));
    }
    step.records.retain(|record| record.op != Op::Forget);
    step.kept = kept && model.variant != Some(Variant::KeptLeaveNotes);
    let before: Vec<usize> = heads(state);
    let active =
        |reader: usize| model.variant != Some(Variant::StaleActivity) || to[reader].is_some_and(|to| to.active);
    let outcome = state.advance(model, &step, active);
    state.executors[slot] = if model.tracks_events() { Executor::Holding { author, told } } else { Executor::Idle };
    if outcome == Outcome::Done && model.variant == Some(Variant::SequenceBeforeCommit) {
        let grown = (0..LOGS).find(|log| heads(state)[*log] > before[*log]);
        if let Some(log) = grown
            && let Some(inbox) = &mut state.store.inboxes[log]
        {
            inbox.log[before[log]].awaited = true;
            state.executors[slot] = Executor::Filling { log: log as u8, at: before[log] as u8 };
        }
    }
}

fn heads(state: &State) -> Vec<usize> {
    state.store.inboxes.iter().map(|inbox| inbox.as_ref().map_or(0, |inbox| inbox.log.len())).collect()
}

/// Everything up to where the outbox was read to is pushed: finishes the events up to there. What has been reopened may
/// have been so after this looked: then it stays, and only who has gone through it since finishes it, as a whole.
pub(crate) fn finish(model: &Fanout, state: &mut State, slot: usize) {
    let Executor::AtHead { author, told, upto } = std::mem::take(&mut state.executors[slot]) else { return };
    let of = usize::from(author);
    let reopened = state.truth.authors[of].reopened;
    let anybody = model.variant == Some(Variant::ToldWithoutNumber);
    if reopened == Reopened::Yes || reopened == Reopened::Told && !told && !anybody {
        let stays = model.variant != Some(Variant::FinishedAsItIsTold);
        state.truth.authors[of].reopened = if stays { Reopened::Told } else { Reopened::No };
        if reopened == Reopened::Yes {
            take_back(state, of);
        }
        state.executors[slot] = Executor::Holding { author, told: stays };
        return;
    }
    state.truth.authors[of].job = false;
    if reopened == Reopened::No || upto == state.truth.head(of) {
        take_back(state, of);
        let of = &mut state.truth.authors[of];
        of.finished = of.finished.max(upto);
        of.reopened = Reopened::No;
    }
}

/// What workers on `author` have been told is of no use any more.
pub(crate) fn take_back(state: &mut State, of: usize) {
    use Executor::{AtHead, Holding, Recipients, Records};
    for executor in &mut state.executors {
        if let Holding { author, told }
        | Records { author, told, .. }
        | Recipients { author, told, .. }
        | AtHead { author, told, .. } = executor
            && usize::from(*author) == of
        {
            *told = false;
        }
    }
}

/// Fills the place that was given out before.
pub(crate) fn fill(state: &mut State, slot: usize) {
    let Executor::Filling { log, at } = std::mem::take(&mut state.executors[slot]) else { return };
    let line = state.store.inboxes[usize::from(log)].as_mut().and_then(|inbox| inbox.log.get_mut(usize::from(at)));
    line.into_iter().for_each(|line| line.awaited = false);
}

/// The progress at which a reader of the Archive cuts for an inbox, by the variant.
pub(crate) fn cut_at(model: &Fanout, progress: Reached) -> Reached {
    match model.variant {
        Some(Variant::CutIgnoresLastReader) => Reached::at(progress.done),
        _ => progress,
    }
}
