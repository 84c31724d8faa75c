//! The pull door and the direct door: where the inbox stands, then the news beyond it in one snapshot with the edges,
//! then one step.
//!
//! Any hint that there are news (a broadcast, the poll, a job) only says when this begins, and it may begin whenever
//! there are some: so a lost hint is a late one, and at rest none is outstanding. Reads do not ask for what is
//! addressed; they take it along.

use feedgate_common::inboxes::Take;
use feedgate_common::{Entry, Epoch, FeedId, Op};

use crate::inbox::Outcome;
use crate::state::{News, State, Taken, Taker};
use crate::variants::Variant;
use crate::{Action, Fanout};

/// What takers can do next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    for (slot, taker) in Fanout::distinct(&state.takers[..model.bounds.takers]) {
        match taker {
            Taker::Idle => {
                for log in 0..model.logs() {
                    if may_have_news(model, state, log) {
                        actions.push(Action::TakeBegin { slot, log, worker: false });
                    }
                    let of = &state.truth.readers[model.reader_of(log)];
                    if usize::from(of.direct_finished) < of.direct.len() && model.feed_of(log) == FeedId::MAIN {
                        actions.push(Action::TakeBegin { slot, log, worker: true });
                    }
                }
            }
            Taker::Finishing { .. } => actions.push(Action::TakeFinish { slot }),
            Taker::Served { .. } => actions.push(Action::TakeNext { slot }),
            Taker::News(_) => actions.push(Action::TakeStep { slot, crash: false }),
        }
    }
}

/// Whether a read takes news first. The node knows the newest pull number, sooner or later.
fn may_have_news(model: &Fanout, state: &State, log: usize) -> bool {
    let Some(inbox) = state.inbox(log) else { return false };
    if model.variant == Some(Variant::PullIfAbsent) {
        let mut news = News { log: log as u8, epoch: inbox.epoch, ..News::default() };
        read(model, state, &mut news);
        return !entries(model, state, &news).is_empty();
    }
    inbox.taken.pull.max(nothing_up_to(state, log)) < state.truth.pull_seq
}

fn nothing_up_to(state: &State, log: usize) -> u8 {
    let (epoch, upto) = state.looked[log];
    if state.inbox(log).is_some_and(|inbox| inbox.epoch == epoch) { upto } else { 0 }
}

/// Reads where the inbox stands, and the news. (The step compares where it stands, so it may as well be read with
/// them.) A worker that has served another feed already finishes no more than `least`.
pub(crate) fn begin(model: &Fanout, state: &mut State, slot: usize, log: usize, worker: bool, least: u8) {
    let stand = state.inbox(log);
    let (epoch, expected) = stand.map_or((0, Taken::default()), |inbox| (inbox.epoch, inbox.taken));
    let pull = if worker { expected.pull } else { expected.pull.max(nothing_up_to(state, log)) };
    let after = Taken { pull, ..expected };
    let mut news = News { log: log as u8, worker, epoch, expected, after, ..News::default() };
    read(model, state, &mut news);
    news.least = least;
    if model.bounds.remembers && !worker && entries(model, state, &news).is_empty() {
        state.looked[log] = (epoch, news.upto.pull);
    } else {
        state.takers[slot] = Taker::News(news);
    }
}

/// One snapshot: the edges, the counter, and how far the news go.
fn read(model: &Fanout, state: &State, news: &mut News) {
    let (log, reader) = (usize::from(news.log), model.reader_of(news.log.into()));
    news.edges = state.truth.edges(reader);
    news.counter = state.truth.readers[reader].counter;
    let all = state.truth.counters(reader);
    let [pulled, direct] = state.truth.news(model, log, news.edges, news.after, all);
    let limit = model.bounds.news_limit;
    news.upto = all;
    if pulled.len() > limit {
        news.upto = Taken { pull: pulled[limit - 1].0, direct: news.after.direct };
    } else if pulled.len() + direct.len() > limit {
        news.upto.direct = if limit == pulled.len() { news.after.direct } else { direct[limit - pulled.len() - 1].0 };
    }
    // Without an inbox there is nobody to bring it to: a rebuild that begins later sees all that this snapshot does.
    news.finishes = if news.epoch == 0 { all.direct } else { news.upto.direct };
    if model.variant == Some(Variant::PullIfAbsent)
        && let Some(inbox) = state.inbox(log)
    {
        news.after.pull = 0;
        for (author, edge) in news.edges.iter_mut().enumerate() {
            edge.on &= !inbox.log.iter().any(|line| line.op == Op::Add && usize::from(line.author) == author);
        }
    }
}

/// What was read, as entries.
fn entries(model: &Fanout, state: &State, news: &News) -> Vec<Entry> {
    let [pulled, direct] = state.truth.news(model, news.log.into(), news.edges, news.after, news.upto);
    pulled.into_iter().chain(direct).map(|(_, entry)| entry).collect()
}

/// The step, and if it is the worker's finishing the events; or only the step.
pub(crate) fn step(model: &Fanout, state: &mut State, slot: usize, crash: bool) {
    let Taker::News(mut news) = std::mem::take(&mut state.takers[slot]) else { return };
    let log = usize::from(news.log);
    if model.variant == Some(Variant::RecordsAfterEdges) {
        news.upto.pull = state.truth.pull_seq;
    }
    let step = Take {
        key: model.key_of(log),
        epoch: Epoch(news.epoch.into()),
        expected: news.expected.into(),
        next: news.upto.into(),
        entries: entries(model, state, &news),
        counter: news.counter.into(),
    };
    let missing = state.inbox(log).is_none();
    let outcome = match state.take(model, log, &step) {
        Outcome::Building if model.variant == Some(Variant::StepsPassBuildsBy) => Outcome::Done,
        outcome => outcome,
    };
    if !news.worker || crash {
        return;
    }
    let (reader, least) = (model.reader_of(log) as u8, news.least.min(news.finishes));
    let is_main = step.key.feed == FeedId::MAIN;
    if outcome != Outcome::Done {
        // The work goes on with this feed.
        state.takers[slot] = if is_main { Taker::Idle } else { Taker::Served { reader, least: news.least } };
    } else if missing && model.variant == Some(Variant::MissingFinishesAll) {
        state.takers[slot] = Taker::Finishing { reader };
    } else if is_main && model.bounds.feeds > 1 && model.variant != Some(Variant::FinishedAfterTheMainFeed) {
        state.takers[slot] = Taker::Served { reader, least };
    } else {
        finish(state, reader, least);
    }
}

/// Asks for the feeds that have names, and goes on with the one there is. Where there is none the event is finished:
/// that is another call, but what comes between the two does not look at the event.
pub(crate) fn next(model: &Fanout, state: &mut State, slot: usize) {
    let Taker::Served { reader, least } = std::mem::take(&mut state.takers[slot]) else { return };
    if state.truth.feeds > 1 {
        begin(model, state, slot, model.log_of(reader.into(), FeedId(1)), true, least);
    } else {
        finish(state, reader, least);
    }
}

fn finish(state: &mut State, reader: u8, upto: u8) {
    let of = &mut state.truth.readers[usize::from(reader)];
    of.direct_finished = of.direct_finished.max(upto);
}

/// Finishes whatever was addressed to the reader by now.
pub(crate) fn finish_all(state: &mut State, slot: usize) {
    let Taker::Finishing { reader } = std::mem::take(&mut state.takers[slot]) else { return };
    let of = &mut state.truth.readers[usize::from(reader)];
    of.direct_finished = of.direct.len() as u8;
}
