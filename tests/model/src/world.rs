//! What happens from outside, each at any moment as long as the bounds allow it: authors write, readers follow, classes
//! change, inboxes fall asleep, logs are cut, processes and the store crash.

use feedgate_common::change::{Class, Route, route_of};
use feedgate_common::graph::Shields;
use feedgate_common::{FeedId, Op};

use crate::state::{
    ADDRESSED_MAX, AUTHORS, Addressed, FollowWorker, Item, OUTBOX_MAX, Posted, Row, State, Taker, ToReader,
    addressed_item, item_of,
};
use crate::variants::Variant;
use crate::{Action, Fanout, Process};

/// What can happen next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    let (bounds, spent) = (&model.bounds, state.spent);
    let authors = 0..bounds.authors;
    if spent.records < bounds.records {
        for author in authors.clone().filter(|author| state.truth.head(*author) < OUTBOX_MAX) {
            let audiences = if spent.narrowed < bounds.narrowed { audiences(model, state, author) } else { vec![] };
            for feed in 0..state.truth.feeds.into() {
                actions.push(Action::Add { author, feed });
                actions.extend(audiences.iter().map(|&to| Action::Narrow { author, feed, to }));
            }
            for item in (1..=OUTBOX_MAX).map(|seq| item_of(author, seq)).filter(|item| state.truth.version(*item) > 0) {
                actions.extend(bounds.edits.then_some(Action::Edit { item }));
                actions.extend(bounds.deletes.then_some(Action::Delete { item }));
            }
        }
    }
    if spent.moves < bounds.moves {
        actions.extend((1..16).filter(|item| may_move(model, state, *item)).map(|item| Action::Move { item }));
    }
    if spent.replaced < bounds.replaced && state.truth.addressed.len() < ADDRESSED_MAX.into() {
        let items = (0..state.truth.addressed.len()).map(addressed_item);
        actions.extend(items.filter(|item| state.truth.version(*item) > 0).map(|item| Action::Replace { item }));
    }
    if usize::from(state.truth.feeds) < bounds.feeds {
        actions.push(Action::NameFeed);
    }
    if spent.addressed < bounds.addressed {
        let sent = state.truth.addressed.len();
        if sent < ADDRESSED_MAX.into() {
            for author in authors.clone() {
                actions.extend((0..state.truth.feeds.into()).map(|feed| Action::Send { author, feed }));
            }
        }
        for item in (0..sent).map(addressed_item).filter(|item| state.truth.version(*item) > 0) {
            actions.extend(bounds.edits.then_some(Action::Edit { item }));
            actions.extend(bounds.deletes.then_some(Action::Delete { item }));
        }
    }
    if spent.classes < bounds.classes_changed {
        for author in authors {
            let to = [(Class::Push, true), (Class::Pull, true), (Class::Everyone, bounds.everyone)];
            let now = state.truth.authors[author].class;
            let may = |class| now != class && now != Class::Everyone;
            actions.extend(
                to.into_iter()
                    .filter(|(class, on)| *on && may(*class))
                    .map(|(class, _)| Action::Classify { author, class }),
            );
        }
    }
    for (reader, author) in model.pairs() {
        let row = state.truth.readers[reader].rows[author];
        if spent.follows < bounds.follows_changed {
            let follows = row.follows || !row.held && state.truth.edge(reader, author).on;
            actions.push(if follows { Action::Unfollow { reader, author } } else { Action::Follow { reader, author } });
        }
        if spent.shields < bounds.shields_changed {
            let shield = if bounds.addressed > 0 { Shields::BLOCKED_BY_AUTHOR } else { Shields::MUTED };
            let up = !Shields(row.shields).any_of(shield);
            actions.push(Action::Shield { reader, author, shield: shield.0, up });
        }
    }
    for log in 0..model.logs() {
        let Some(inbox) = state.inbox(log) else { continue };
        if spent.sleeps < bounds.sleeps {
            actions.push(Action::Sleep { log });
        }
        if spent.trims < bounds.trims {
            actions.extend((inbox.cut + 1..inbox.head()).map(|upto| Action::Trim { log, upto }));
        }
    }
    if spent.rollbacks < bounds.rollbacks {
        actions.push(if state.snapshot.is_some() { Action::RollBack } else { Action::CopyStore });
    }
    if spent.crashes < bounds.crashes {
        crashes(model, state, actions);
    }
}

fn crashes(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    let bounds = &model.bounds;
    let idle = |slot: usize, process: Process| Action::Crash { process, slot };
    let busy = |is_busy: &dyn Fn(usize) -> bool, process, count: usize| {
        (0..count).filter(|slot| is_busy(*slot)).map(|slot| idle(slot, process)).collect::<Vec<_>>()
    };
    actions.extend(busy(&|slot| state.executors[slot] != Default::default(), Process::Executor, bounds.executors));
    actions.extend(busy(&|slot| state.rebuilds[slot] != Default::default(), Process::Rebuild, bounds.rebuilds));
    for (slot, worker) in state.follow_workers.iter().enumerate() {
        if matches!(worker, FollowWorker::Edge { .. }) {
            actions.push(Action::FollowStep { slot, crash: true });
        }
    }
    for (slot, taker) in state.takers.iter().enumerate() {
        if matches!(taker, Taker::News(news) if news.worker) {
            actions.push(Action::TakeStep { slot, crash: true });
        }
    }
    if model.variant == Some(Variant::FanOutBeforeOutbox) {
        let writing = (0..AUTHORS).filter(|author| state.truth.head(*author) > 0);
        actions.extend(writing.map(|author| Action::CrashBeforeCommit { author }));
    }
}

/// The audiences that an author may choose now, each as a bit for each reader: any of those who follow.
fn audiences(model: &Fanout, state: &State, author: usize) -> Vec<u8> {
    let follows = |reader: usize| state.truth.edge(reader, author).on && !model.is_own(reader, author);
    let all = (0..model.bounds.readers).filter(|reader| follows(*reader)).fold(0, |all, reader| all | 1 << reader);
    (0..=all).filter(|to| to & all == *to).collect()
}

/// A record that adds.
pub(crate) fn add(model: &Fanout, state: &mut State, author: usize, feed: usize) {
    let item = item_of(author, state.truth.head(author) + 1);
    let route = route_of(state.truth.authors[author].class, 0, 0);
    post(model, state, author, (Op::Add, route, 0), FeedId(feed as u16), (item, false));
    state.spent.records += 1;
}

/// A record that adds an item for the readers in `to` alone.
pub(crate) fn narrow(model: &Fanout, state: &mut State, author: usize, feed: usize, to: u8) {
    let item = item_of(author, state.truth.head(author) + 1);
    post(model, state, author, (Op::Add, Route::Narrow, to), FeedId(feed as u16), (item, false));
    state.spent.records += 1;
    state.spent.narrowed += 1;
}

/// A record of an item that is there, in its feed; or what was addressed to readers, to the same ones.
pub(crate) fn change(model: &Fanout, state: &mut State, op: Op, item: Item) {
    if item >= addressed_item(0) {
        let addressed = &mut state.truth.addressed[usize::from(item - addressed_item(0))];
        addressed.version = if op == Op::Delete { 0 } else { addressed.version + 1 };
        let (to, moved) = (addressed.to, addressed.moved);
        tell(state, to, op, (item, moved));
        state.spent.addressed += 1;
        return;
    }
    let author = usize::from(item > OUTBOX_MAX);
    let Some((_, added)) = state.truth.newest_add(item) else { return };
    let (route, to) = match model.variant {
        Some(Variant::DeleteByClass) => (route_of(state.truth.authors[author].class, 0, 0), 0),
        _ => (added.route, added.to),
    };
    post(model, state, author, (op, route, to), FeedId(added.feed.into()), (item, added.moved));
    state.spent.records += 1;
}

/// Whether an item may get another rank now. Who follows an author only because everyone does is not pushed to, and has
/// nothing from before: what is older than that stays where it is.
fn may_move(model: &Fanout, state: &State, item: Item) -> bool {
    if state.truth.version(item) == 0 {
        return false;
    }
    let of = &state.truth.authors[usize::from(item > OUTBOX_MAX)];
    let anything = model.variant == Some(Variant::OlderThanEveryoneMoves);
    state.truth.newest_add(item).is_none_or(|(seq, _)| {
        let is_older = of.everyone_since.is_some_and(|since| seq <= since);
        of.outbox.len() as u8 + 2 <= OUTBOX_MAX && (!is_older || anything)
    })
}

/// Another rank: a delete at the old place and, in the same transaction, an add at the new one, by the item's own way.
/// An item that has moved goes back to where it was posted.
pub(crate) fn move_to_the_other_place(model: &Fanout, state: &mut State, item: Item) {
    state.spent.moves += 1;
    if item >= addressed_item(0) {
        let addressed = &mut state.truth.addressed[usize::from(item - addressed_item(0))];
        addressed.version += 1;
        addressed.moved = !addressed.moved;
        let (to, moved) = (addressed.to, addressed.moved);
        tell(state, to, Op::Delete, (item, !moved));
        tell(state, to, Op::Add, (item, moved));
        return;
    }
    let author = usize::from(item > OUTBOX_MAX);
    let Some((_, Posted { route, to, feed, moved, .. })) = state.truth.newest_add(item) else { return };
    let feed = FeedId(feed.into());
    if model.variant == Some(Variant::MoveIsAnEdit) {
        post(model, state, author, (Op::Update, route, to), feed, (item, !moved));
        return;
    }
    post(model, state, author, (Op::Delete, route, to), feed, (item, moved));
    let route = match model.variant {
        Some(Variant::MoveByClass) => route_of(state.truth.authors[author].class, 0, 0),
        _ => route,
    };
    post(model, state, author, (Op::Add, route, to), feed, (item, !moved));
}

/// What is addressed to readers gives way to another item for the same readers, in one transaction.
pub(crate) fn replace(model: &Fanout, state: &mut State, item: Item) {
    state.spent.replaced += 1;
    let (n, next) = (usize::from(item - addressed_item(0)), addressed_item(state.truth.addressed.len()));
    let old = state.truth.addressed[n];
    state.truth.addressed[n].version = 0;
    state.truth.addressed.push(Addressed { version: 1, moved: false, replaces: item, ..old });
    let mut news = [(Op::Delete, (item, old.moved)), (Op::Add, (next, false))];
    if model.variant == Some(Variant::ReplacementFirst) {
        news.reverse();
    }
    news.into_iter().for_each(|(op, place)| tell(state, old.to, op, place));
}

/// Adds a record to an outbox: what it does, by which route, and the audience if it is narrowed; then the item, and
/// whether it stands where it has moved to.
fn post(
    model: &Fanout,
    state: &mut State,
    author: usize,
    (op, route, to): (Op, Route, u8),
    feed: FeedId,
    (item, moved): (Item, bool),
) {
    let numbered = route == Route::Pull || model.variant == Some(Variant::CurrentClass);
    state.truth.pull_seq += u8::from(numbered);
    let pull_seq = if numbered { state.truth.pull_seq } else { 0 };
    state.truth.authors[author].outbox.push(Posted { op, route, feed: feed.0 as u8, item, moved, pull_seq, to });
}

/// An item for every reader that is in no block with the author.
pub(crate) fn send(model: &Fanout, state: &mut State, author: usize, feed: usize) {
    let item = addressed_item(state.truth.addressed.len());
    let blocked = |reader: usize| Shields(state.truth.readers[reader].rows[author].shields).blocks();
    let to = (0..model.bounds.readers).filter(|reader| !blocked(*reader)).fold(0, |to, reader| to | 1 << reader);
    state.truth.addressed.push(Addressed {
        author: author as u8,
        feed: feed as u8,
        to,
        version: 1,
        moved: false,
        replaces: 0,
    });
    tell(state, to, Op::Add, (item, false));
    state.spent.addressed += 1;
}

fn tell(state: &mut State, to: u8, op: Op, (item, moved): (Item, bool)) {
    for (reader, of) in state.truth.readers.iter_mut().enumerate() {
        if to >> reader & 1 == 1 {
            of.direct.push(ToReader { op, item, moved });
        }
    }
}

/// The last record was never accepted: it adds nothing. (An outbox never holds `Forget` otherwise.)
pub(crate) fn crash_before_commit(state: &mut State, author: usize) {
    state.truth.authors[author].outbox.last_mut().into_iter().for_each(|last| last.op = Op::Forget);
}

/// A new class, from the next add on.
pub(crate) fn classify(state: &mut State, author: usize, class: Class) {
    let head = state.truth.head(author);
    let of = &mut state.truth.authors[author];
    of.class = class;
    if class == Class::Everyone {
        of.everyone_since = Some(head);
    }
    state.spent.classes += 1;
}

/// Changes an edge's row. Only if the *effect* changes it takes a new generation, and if it turns on a new `from`.
pub(crate) fn change_row(model: &Fanout, state: &mut State, reader: usize, author: usize, change: impl Fn(&mut Row)) {
    let before = state.truth.edge(reader, author);
    let head = state.truth.head(author);
    let of = &mut state.truth.readers[reader];
    let row = &mut of.rows[author];
    if !row.held {
        let from = before.from as u8;
        *row = Row { held: true, follows: before.on, from, since: from, ..Row::default() };
    }
    let was_shielded = row.shields != 0;
    change(row);
    let on = row.follows && row.shields == 0;
    if on == before.on {
        return;
    }
    if !on && model.variant == Some(Variant::UnfollowWithoutNumber) {
        row.finished = row.generation - 1;
        return;
    }
    of.counter += 1;
    row.generation = of.counter;
    if on {
        row.since = if model.bounds.whole_past || model.is_own(reader, author) { 0 } else { head };
        match model.variant {
            Some(Variant::UnmuteKeepsFrom) if was_shielded => {}
            Some(Variant::FromBehindTheHead) => row.from = row.since,
            _ => row.from = head,
        }
    }
}

/// The store goes back to the copy. Every step would notice: the epochs it held count no more.
pub(crate) fn roll_back(model: &Fanout, state: &mut State) {
    let Some(copy) = state.snapshot.take() else { return };
    for (lost, inbox) in state.lost.iter_mut().zip(&state.store.inboxes) {
        *lost = inbox.as_ref().map_or((0, 0), |inbox| (inbox.epoch, inbox.head()));
    }
    state.store = copy;
    state.spent.rollbacks += 1;
    if model.variant == Some(Variant::RollbackNoticedLate) {
        state.unnoticed = true;
    } else {
        notice(state);
    }
}

/// From here on only epochs given from now on count.
pub(crate) fn notice(state: &mut State) {
    state.unnoticed = false;
    state.truth.epoch += 1;
    state.least_epoch = state.truth.epoch;
    state.store.drop_below(state.least_epoch);
    state.lost = Default::default();
}
