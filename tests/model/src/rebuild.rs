//! The rebuild of an inbox that is missing: an epoch and the progress, then the placeholder, then everything else in
//! one snapshot, then push that is behind is made outstanding again, then the swap.

use std::cmp::Reverse;

use feedgate_common::archive::FeedAdd;
use feedgate_common::feed::first_log;
use feedgate_common::inboxes::Build;
use feedgate_common::rules::is_past;
use feedgate_common::{Cut, Entry, Epoch, Op, PullSeq, Record};

use crate::executor::{self, cut_at};
use crate::state::{AUTHORS, Inbox, Placeholder, Rebuild, Reopened, Snapshot, State, author_no, reader_no};
use crate::variants::Variant;
use crate::{Action, Fanout};

/// What rebuilds can do next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    for (slot, rebuild) in Fanout::distinct(&state.rebuilds[..model.bounds.rebuilds]) {
        match rebuild {
            Rebuild::Idle => {
                let missing = (0..model.logs()).filter(|log| state.inbox(*log).is_none());
                let named = missing.filter(|log| model.feed_of(*log).0 < u16::from(state.truth.feeds));
                actions.extend(named.map(|log| Action::RebuildBegin { slot, log }));
            }
            Rebuild::Looked { .. } => actions.push(Action::RebuildPlaceholder { slot }),
            Rebuild::Begun { .. } => actions.push(Action::RebuildRead { slot }),
            Rebuild::Read(read) if !read.reopened => actions.push(Action::RebuildReopen { slot }),
            Rebuild::Read(_) => actions.push(Action::RebuildSwap { slot }),
        }
    }
}

/// Takes a new epoch, and reads the progress of every author. (If the store goes back in between, the epoch is below
/// those that count, whatever was read.)
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, log: usize) {
    state.truth.epoch += 1;
    let (placeholder, reached) = (state.truth.epoch, state.store.progress.map(|progress| cut_at(model, progress)));
    state.rebuilds[slot] = Rebuild::Looked { log: log as u8, placeholder, reached };
}

/// Writes the epoch as the placeholder, unless the inbox exists by now. A placeholder that stands stays, and all
/// builders share it; but a builder that read the progress before the store lost it does not join.
pub(crate) fn placeholder(model: &Fanout, state: &mut State, slot: usize) {
    let Rebuild::Looked { log, mut placeholder, reached } = std::mem::take(&mut state.rebuilds[slot]) else { return };
    let (log, reader) = (usize::from(log), model.reader_of(log.into()));
    if state.inbox(log).is_some() {
        return;
    }
    let stands = &state.store.placeholders[log];
    let joins = placeholder >= state.least_epoch || model.variant == Some(Variant::JoinsAfterALoss);
    let mut notes = 0;
    if stands.epoch > 0 && joins && model.variant != Some(Variant::PlaceholderTaken) {
        placeholder = stands.epoch;
        if model.variant != Some(Variant::JoinerTakesAllNotes) {
            notes = stands.notes.len() as u8;
        }
    } else if placeholder >= state.least_epoch {
        state.store.placeholders[log] = Placeholder { epoch: placeholder, notes: vec![] };
    }
    let early = model.variant == Some(Variant::RebuildCounterBefore);
    let counter = if early { state.truth.readers[reader].counter } else { 0 };
    state.rebuilds[slot] = Rebuild::Begun { log: log as u8, placeholder, notes, reached, counter };
    if model.variant == Some(Variant::ServeBeforeSwap) {
        let built_at = state.truth.readers[reader].counter;
        let taken = state.truth.counters(reader);
        let (taken_in, ahead) = ([0; AUTHORS], [0; AUTHORS]);
        state.store.inboxes[log] =
            Some(Inbox { epoch: placeholder, log: vec![], cut: 0, floor: None, built_at, taken_in, ahead, taken });
    }
}

/// Reads edges, outboxes and counters in one snapshot.
pub(crate) fn read(model: &Fanout, state: &mut State, slot: usize) {
    let Rebuild::Begun { log, placeholder, notes, reached, counter } = state.rebuilds[slot] else { return };
    let of = model.reader_of(log.into());
    let truth = &state.truth;
    let mut edges = truth.edges(of);
    if model.variant == Some(Variant::RebuildSkipsPendingFollow) {
        for (edge, row) in edges.iter_mut().zip(truth.readers[of].rows) {
            edge.on &= row.finished >= row.generation;
        }
    }
    let heads = std::array::from_fn(|author| truth.head(author));
    let early = model.variant == Some(Variant::RebuildCounterBefore);
    let counter = if early { counter } else { truth.readers[of].counter };
    let is_behind = |author: usize| {
        let held = edges[author].on && edges[author].generation > 0;
        held && reached[author].done < heads[author] && !matches!(model.variant, Some(Variant::AheadOfPushAndForgotten))
    };
    let ahead: [u8; AUTHORS] = std::array::from_fn(|author| if is_behind(author) { heads[author] } else { 0 });
    let taken = truth.counters(of);
    let reopens = model.tracks_events() && ahead != [0; AUTHORS] && model.variant != Some(Variant::NothingReopened);
    let reopened = !reopens;
    state.rebuilds[slot] =
        Rebuild::Read(Snapshot { log, placeholder, notes, reached, edges, heads, counter, taken, ahead, reopened });
}

/// Push that is behind becomes outstanding again.
pub(crate) fn reopen(state: &mut State, slot: usize) {
    let Rebuild::Read(read) = &mut state.rebuilds[slot] else { return };
    read.reopened = true;
    let ahead = read.ahead;
    for (author, upto) in ahead.into_iter().enumerate() {
        if state.store.progress[author].done < upto {
            executor::take_back(state, author);
            state.truth.authors[author].reopened = Reopened::Yes;
        }
    }
}

/// Swaps the inbox in, as `Inboxes::finish_build` does.
pub(crate) fn swap(model: &Fanout, state: &mut State, slot: usize) {
    let Rebuild::Read(read) = std::mem::take(&mut state.rebuilds[slot]) else { return };
    let log = usize::from(read.log);
    let mut adds = adds(model, state, &read);
    adds.sort_unstable_by_key(|add| Reverse(add.key));
    let (adds, floor) = first_log(adds, model.bounds.keep);
    let late = model.variant == Some(Variant::RebuildCounterAfter);
    let entry = |add: FeedAdd| Entry {
        op: Op::Add,
        author: add.author,
        outbox_seq: add.outbox_seq,
        generation: add.generation,
        key: add.key,
    };
    let build = Build {
        key: model.key_of(log),
        epoch: Epoch(read.placeholder.into()),
        built_at: if late { state.truth.readers[model.reader_of(log)].counter } else { read.counter }.into(),
        entries: adds.into_iter().map(entry).collect(),
        floor,
        taken: read.taken.into(),
        ahead: (0..AUTHORS)
            .filter(|of| read.ahead[*of] > 0 && model.variant != Some(Variant::RebuildCutAtTheProgress))
            .map(|of| (author_no(of), read.ahead[of].into()))
            .collect(),
        notes_from: read.notes.into(),
        until: 0,
    };
    state.finish_build(model, log, &build);
}

/// All that the snapshot shows, however far push is, and what is addressed.
fn adds(model: &Fanout, state: &State, read: &Snapshot) -> Vec<FeedAdd> {
    let (log, reader) = (usize::from(read.log), model.reader_of(read.log.into()));
    let mut adds = state.truth.direct_adds(model, log, read.taken.direct);
    for author in 0..model.bounds.authors {
        let outbox = state.truth.records_of(model, author, model.feed_of(log), read.heads[author]);
        let edge = read.edges[author];
        let cut = Cut { progress: read.reached[author].into(), pull: PullSeq::MAX };
        let past = |add: &_| is_past(cut, reader_no(reader), add, state.truth.pull_seq_of(author, add));
        let cuts = model.variant == Some(Variant::RebuildCutAtTheProgress);
        let reached = |add: &Record| !cuts || add.seq <= edge.from.into() || past(add);
        let door = (edge.door(), edge.door().from);
        let shown = state.truth.to_bring(model, (reader, author), &outbox, door, reached);
        adds.extend(shown.into_iter().map(|add| FeedAdd {
            author: author_no(author),
            outbox_seq: add.seq,
            generation: edge.generation.into(),
            key: add.key,
        }));
    }
    adds
}
