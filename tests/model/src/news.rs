//! The pull door and the direct door: where the inbox stands, then the news beyond it in one snapshot with the edges, then one
//! step.
//!
//! Any hint that there are news (a broadcast, the poll, a job) only says when this begins, and it may begin whenever there are
//! some: so a lost hint is a late one, and at rest none is outstanding. Reads do not ask for what is addressed; they take it along.

use feedgate_common::inboxes::Take;
use feedgate_common::{Entry, Epoch, InboxKey, Op};

use crate::inbox::Outcome;
use crate::state::{Marks, News, State, Taker, reader_no};
use crate::variants::Variant;
use crate::{Action, Fanout};

/// What takers can do next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    for (slot, taker) in Fanout::distinct(&state.takers[..model.bounds.takers]) {
        match taker {
            Taker::Idle => {
                for reader in 0..model.bounds.readers {
                    if may_have_news(model, state, reader) {
                        actions.push(Action::TakeBegin { slot, reader, worker: false });
                    }
                    let of = &state.truth.readers[reader];
                    if usize::from(of.direct_finished) < of.direct.len() {
                        actions.push(Action::TakeBegin { slot, reader, worker: true });
                    }
                }
            }
            Taker::Finishing { .. } => actions.push(Action::TakeFinish { slot }),
            Taker::News(_) => actions.push(Action::TakeStep { slot, crash: false }),
        }
    }
}

/// Whether a read takes news first. The node knows the newest pull number, sooner or later.
fn may_have_news(model: &Fanout, state: &State, reader: usize) -> bool {
    let Some(inbox) = state.inbox(reader) else { return false };
    if model.variant == Some(Variant::PullIfAbsent) {
        let mut news = News { reader: reader as u8, epoch: inbox.epoch, ..News::default() };
        read(model, state, &mut news);
        return !entries(model, state, &news).is_empty();
    }
    inbox.taken.pull.max(nothing_up_to(state, reader)) < state.truth.pull_seq
}

fn nothing_up_to(state: &State, reader: usize) -> u8 {
    let (epoch, upto) = state.looked[reader];
    if state.inbox(reader).is_some_and(|inbox| inbox.epoch == epoch) { upto } else { 0 }
}

/// Reads where the inbox stands, and the news. (The step compares where it stands, so it may as well be read with them.)
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, reader: usize, worker: bool) {
    let stand = state.inbox(reader);
    let (epoch, expected) = stand.map_or((0, Marks::default()), |inbox| (inbox.epoch, inbox.taken));
    let pull = if worker { expected.pull } else { expected.pull.max(nothing_up_to(state, reader)) };
    let after = Marks { pull, ..expected };
    let mut news = News { reader: reader as u8, worker, epoch, expected, after, ..News::default() };
    read(model, state, &mut news);
    if model.bounds.remembers && !worker && entries(model, state, &news).is_empty() {
        state.looked[reader] = (epoch, news.upto.pull);
    } else {
        state.takers[slot] = Taker::News(news);
    }
}

/// One snapshot: the edges, the counter, and how far the news go.
fn read(model: &Fanout, state: &State, news: &mut News) {
    let reader = usize::from(news.reader);
    news.edges = state.truth.edges(reader);
    news.counter = state.truth.readers[reader].counter;
    let all = state.truth.counters(reader);
    let [pulled, direct] = state.truth.news(model, reader, news.edges, news.after, all);
    let limit = model.bounds.news_limit;
    news.upto = all;
    if pulled.len() > limit {
        news.upto = Marks { pull: pulled[limit - 1].0, direct: news.after.direct };
    } else if pulled.len() + direct.len() > limit {
        news.upto.direct = if limit == pulled.len() { news.after.direct } else { direct[limit - pulled.len() - 1].0 };
    }
    // Without an inbox there is nobody to bring it to: a rebuild that begins later sees all that this snapshot does.
    news.finishes = if news.epoch == 0 { all.direct } else { news.upto.direct };
    if model.variant == Some(Variant::PullIfAbsent)
        && let Some(inbox) = state.inbox(reader)
    {
        news.after.pull = 0;
        for (author, edge) in news.edges.iter_mut().enumerate() {
            edge.on &= !inbox.log.iter().any(|line| line.op == Op::Add && usize::from(line.author) == author);
        }
    }
}

/// What was read, as entries.
fn entries(model: &Fanout, state: &State, news: &News) -> Vec<Entry> {
    let [pulled, direct] = state.truth.news(model, news.reader.into(), news.edges, news.after, news.upto);
    pulled.into_iter().chain(direct).map(|(_, entry)| entry).collect()
}

/// The step, and if it is the worker's finishing the events; or only the step.
pub(crate) fn step(model: &Fanout, state: &mut State, slot: usize, crash: bool) {
    let Taker::News(mut news) = std::mem::take(&mut state.takers[slot]) else { return };
    let reader = usize::from(news.reader);
    if model.variant == Some(Variant::RecordsAfterEdges) {
        news.upto.pull = state.truth.pull_seq;
    }
    let step = Take {
        key: InboxKey::main(reader_no(reader)),
        epoch: Epoch(news.epoch.into()),
        expected: news.expected.into(),
        next: news.upto.into(),
        entries: entries(model, state, &news),
        counter: news.counter.into(),
    };
    let missing = state.inbox(reader).is_none();
    let outcome = state.take(model, reader, &step);
    if outcome == Outcome::Done && news.worker && !crash {
        let of = &mut state.truth.readers[reader];
        if missing && model.variant == Some(Variant::MissingFinishesAll) {
            state.takers[slot] = Taker::Finishing { reader: news.reader };
        } else {
            of.direct_finished = of.direct_finished.max(news.finishes);
        }
    }
}

/// Finishes whatever was addressed to the reader by now.
pub(crate) fn finish_all(state: &mut State, slot: usize) {
    let Taker::Finishing { reader } = std::mem::take(&mut state.takers[slot]) else { return };
    let of = &mut state.truth.readers[usize::from(reader)];
    of.direct_finished = of.direct.len() as u8;
}
