//! The rebuild of an inbox that is missing: token and progress, then everything else in one snapshot, then what lags is made
//! outstanding again, then the swap.

use std::cmp::Reverse;

use feedgate_common::archive::FeedAdd;
use feedgate_common::feed::oldest_first;
use feedgate_common::inboxes::Build;
use feedgate_common::rules::{is_past, shown};
use feedgate_common::{Cut, Entry, Epoch, Op, PullSeq, Record};

use crate::executor::{self, cut_at};
use crate::state::{AUTHORS, Inbox, Rebuild, Reopened, Snapshot, State, author_no, reader_no};
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
            Rebuild::Begun { .. } => actions.push(Action::RebuildRead { slot }),
            Rebuild::Read(read) if read.lagging.contains(&true) => actions.push(Action::RebuildReopen { slot }),
            Rebuild::Read(_) => actions.push(Action::RebuildSwap { slot }),
        }
    }
}

/// Takes a new epoch, writes it as the token, and reads the progress of every author.
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, log: usize) {
    let reader = model.reader_of(log);
    state.truth.epoch += 1;
    let token = state.truth.epoch;
    state.store.tokens[log] = token;
    let early = model.variant == Some(Variant::RebuildCounterBefore);
    let counter = if early { state.truth.readers[reader].counter } else { 0 };
    let cuts = state.store.progress.map(|progress| cut_at(model, progress));
    state.rebuilds[slot] = Rebuild::Begun { log: log as u8, token, cuts, counter };
    if model.variant == Some(Variant::ServeBeforeSwap) {
        let built_at = state.truth.readers[reader].counter;
        let taken = state.truth.counters(reader);
        let taken_in = [0; AUTHORS];
        state.store.inboxes[log] =
            Some(Inbox { epoch: token, log: vec![], cut: 0, floor: None, built_at, taken_in, taken });
    }
}

/// One snapshot of edges, outboxes and counters.
pub(crate) fn read(model: &Fanout, state: &mut State, slot: usize) {
    let Rebuild::Begun { log, token, cuts, counter } = state.rebuilds[slot] else { return };
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
    let lags = |author: usize| model.tracks_events() && edges[author].on && cuts[author].done < heads[author].into();
    let lagging = std::array::from_fn(|author| lags(author) && model.variant != Some(Variant::NothingReopened));
    let taken = truth.counters(of);
    state.rebuilds[slot] = Rebuild::Read(Snapshot { log, token, cuts, edges, heads, counter, taken, lagging });
}

/// What is behind the outbox still becomes outstanding again.
pub(crate) fn reopen(state: &mut State, slot: usize) {
    let Rebuild::Read(read) = &mut state.rebuilds[slot] else { return };
    let lagging = std::mem::take(&mut read.lagging);
    for author in (0..AUTHORS).filter(|author| lagging[*author]) {
        let head = state.truth.head(author);
        if state.store.progress[author].done < head.into() {
            executor::take_back(state, author);
            state.truth.authors[author].reopened = Reopened::Yes;
        }
    }
}

/// The swap.
pub(crate) fn swap(model: &Fanout, state: &mut State, slot: usize) {
    let Rebuild::Read(read) = std::mem::take(&mut state.rebuilds[slot]) else { return };
    let log = usize::from(read.log);
    let mut adds = adds(model, state, &read);
    adds.sort_unstable_by_key(|add| Reverse(add.key));
    let floor = adds.get(model.bounds.keep).map(|add| add.key);
    adds.truncate(model.bounds.keep);
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
        epoch: Epoch(read.token.into()),
        built_at: if late { state.truth.readers[model.reader_of(log)].counter } else { read.counter }.into(),
        entries: oldest_first(adds).into_iter().map(entry).collect(),
        floor,
        taken: read.taken.into(),
        until: 0,
    };
    state.finish_build(model, log, &build);
}

/// All that the snapshot shows: push up to the cut, pull all of it, and what is addressed.
fn adds(model: &Fanout, state: &State, read: &Snapshot) -> Vec<FeedAdd> {
    let (log, reader) = (usize::from(read.log), model.reader_of(read.log.into()));
    let mut adds = state.truth.direct_adds(model, log, read.taken.direct);
    for author in 0..model.bounds.authors {
        let outbox = state.truth.records_of(model, author, model.feed_of(log), read.heads[author]);
        let cut = Cut { progress: read.cuts[author], pull: PullSeq::MAX };
        let edge = read.edges[author];
        let past = |add: &_| is_past(cut, reader_no(reader), add, state.truth.pull_seq_of(author, add));
        let reached = |add: &Record| add.seq <= edge.from.into() || past(add);
        adds.extend(shown(&outbox, edge.door(), model.bounds.backfill, reached).into_iter().map(|add| FeedAdd {
            author: author_no(author),
            outbox_seq: add.seq,
            generation: edge.generation.into(),
            key: add.key,
        }));
    }
    adds
}
