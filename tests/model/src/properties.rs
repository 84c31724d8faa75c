//! The properties that must hold: the invariants, in every state or in every state at rest.
//!
//! The properties have their own way to read a log, so that they do not trust the functions they check.

use feedgate_common::Op;
use feedgate_common::change::Route;
use feedgate_common::rules::is_past;
use feedgate_common::{Cut, PullSeq, Record};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Fanout;
use crate::device::page_now;
use crate::shared::Bytes;
use crate::state::{Inbox, Item, Line, OUTBOX_MAX, State, View, addressed_item, reader_no};

/// A property, and whether a state has it.
pub(crate) type Rule = (&'static str, fn(&Fanout, &State) -> bool);

/// What holds in every state.
const ALWAYS: &[Rule] = &[
    ("i3_an_add_stands_once", |_, state| inboxes(state).all(|(_, inbox)| an_add_stands_once(inbox))),
    ("i5_nothing_of_an_author_that_was_left", |model, state| {
        inboxes(state).all(|(log, inbox)| nothing_of_whom_it_left(model, state, log, inbox))
    }),
    ("i6_only_what_was_accepted_is_shown", |model, state| {
        inboxes(state).all(|(log, inbox)| only_what_was_accepted(model, state, log, inbox))
    }),
    ("i9_nothing_is_missing_up_to_the_position", nothing_is_missing),
    ("i10_no_mark_passes_what_was_not_appended", |model, state| {
        inboxes(state).all(|(log, inbox)| no_mark_is_ahead(model, state, log, inbox))
    }),
    ("i10_marks_only_move_forward", |_, state| !state.went_back),
    ("i11_a_delete_follows_its_add", |_, state| inboxes(state).all(|(_, inbox)| deletes_follow(inbox))),
    ("i12_no_device_is_ahead_of_its_log", no_device_is_ahead),
    ("i14_each_door_keeps_the_order_of_the_outbox", |model, state| {
        inboxes(state).all(|(_, inbox)| each_door_keeps_order(model, state, inbox))
    }),
    ("i16_no_sequence_id_is_used_twice", |_, state| !state.reused),
    ("i8_a_page_shows_all_that_was_accepted_and_finished", |model, state| {
        inboxes(state).all(|(log, inbox)| page_shows_what_is_finished(model, state, log, inbox))
    }),
    ("i7_no_page_shows_an_item_twice", |_, state| !state.twice),
    ("s11_each_item_stands_where_the_log_puts_it", each_item_stands_where_the_log_puts_it),
    ("s6_what_gave_way_is_gone", what_gave_way_is_gone),
    ("comes_to_rest", comes_to_rest),
];

/// What holds in every state in which the system has nothing left to do.
const AT_REST: &[Rule] = &[
    ("i4_at_rest_a_device_shows_what_is_wanted", devices_show_what_is_wanted),
    ("i7_at_rest_a_page_is_what_is_wanted", pages_are_what_is_wanted),
    ("at_rest_no_inbox_is_ahead_of_push", |model, state| {
        !model.tracks_events() || inboxes(state).all(|(_, inbox)| is_level(state, inbox))
    }),
];

/// The property of this name.
pub(crate) fn named(name: &str) -> Option<Rule> {
    ALWAYS.iter().chain(AT_REST).find(|rule| rule.0 == name).copied()
}

/// What the checker asks of each state: all properties, or the one that is [asked](Fanout::asked) for. To the checker
/// this is one property, because it spends time on each, and all that hold at rest ask for rest once.
pub(crate) fn hold(model: &Fanout, state: &State) -> bool {
    match model.asked {
        Some(name) => named(name).is_some_and(|rule| has(model, state, rule)),
        None => {
            ALWAYS.iter().all(|(_, holds)| holds(model, state))
                && (!at_rest(model, state) || AT_REST.iter().all(|(_, holds)| holds(model, state)))
        }
    }
}

/// The properties that a state does not have.
pub(crate) fn broken(model: &Fanout, state: &State) -> Vec<&'static str> {
    let all = ALWAYS.iter().chain(AT_REST);
    all.filter(|rule| !has(model, state, **rule)).map(|(name, _)| *name).collect()
}

fn has(model: &Fanout, state: &State, rule: Rule) -> bool {
    let at_rest_only = AT_REST.iter().any(|(name, _)| *name == rule.0);
    at_rest_only && !at_rest(model, state) || rule.1(model, state)
}

fn inboxes(state: &State) -> impl Iterator<Item = (usize, &Inbox)> {
    (0..).zip(&state.store.inboxes).filter_map(|(log, inbox)| Some((log, inbox.as_ref()?)))
}

/// What the log shows from its beginning, with the number of its add as the version, or 1 if it is addressed.
fn folded(lines: &[Line]) -> View {
    let mut shown = View::default();
    lines.iter().filter(|line| !line.awaited).for_each(|line| fold(&mut shown, line));
    shown
}

fn fold(shown: &mut View, line: &Line) {
    match line.op {
        Op::Add => shown.set(line.item, line.outbox_seq.max(1), line.moved),
        Op::Update => {}
        Op::Delete => shown.remove(line.item),
        Op::Forget => forget(shown, line.author),
    }
}

fn forget(shown: &mut View, author: u8) {
    shown.items().filter(|item| (item - 1) / OUTBOX_MAX == author).for_each(|item| shown.remove(item));
}

/// No add meets its item shown already, be it of the same generation or of another, and none stands there twice. (What
/// is addressed may come to a place again, behind a delete.)
fn an_add_stands_once(inbox: &Inbox) -> bool {
    let mut shown = View::default();
    inbox.log.iter().enumerate().filter(|(_, line)| !line.awaited).all(|(at, line)| {
        let again = |other: &Line| other == line && other.outbox_seq > 0;
        let stands = line.op == Op::Add && (shown.version(line.item) > 0 || inbox.log[..at].iter().any(again));
        fold(&mut shown, line);
        !stands
    })
}

/// Once a log has taken in that an edge is off, it shows nothing of that author.
fn nothing_of_whom_it_left(model: &Fanout, state: &State, log: usize, inbox: &Inbox) -> bool {
    let reader = model.reader_of(log);
    (0..model.bounds.authors).all(|author| {
        let is_off = !state.truth.edge(reader, author).on && has_taken_in_the_edge(state, reader, inbox, author);
        !is_off || folded(&inbox.log).items().all(|item| usize::from((item - 1) / OUTBOX_MAX) != author)
    })
}

/// Every add of a log is one of its author's outbox, or addressed; whatever stands in it is of its feed.
fn only_what_was_accepted(model: &Fanout, state: &State, log: usize, inbox: &Inbox) -> bool {
    let of_its_feed = |line: &Line| line.op == Op::Forget || state.truth.feed(line.item) == model.feed_of(log);
    let accepted = |line: &Line| {
        let outbox = &state.truth.authors[usize::from(line.author)].outbox;
        let posted = outbox.get(usize::from(line.outbox_seq) - 1);
        posted.is_some_and(|of| (of.op, of.item, of.moved) == (Op::Add, line.item, line.moved))
    };
    inbox.log.iter().all(of_its_feed)
        && inbox.log.iter().filter(|line| line.op == Op::Add && line.outbox_seq > 0).all(accepted)
}

/// A device at a position of its log shows all that lives up to there. But page one may know more than the log yet:
/// what the log is going to forget, because the edge is another by now, need not be shown; nor what is about to move,
/// which may stand above the floor by now and come with its move.
fn nothing_is_missing(model: &Fanout, state: &State) -> bool {
    state.devices[..model.bounds.devices].iter().enumerate().all(|(slot, device)| {
        let log = slot % model.logs();
        let Some(inbox) = state.inbox(log) else { return true };
        if device.epoch != inbox.epoch || !(inbox.cut..=inbox.head()).contains(&device.offset) {
            return true;
        }
        let (seen, ahead) = inbox.log.split_at(device.offset.into());
        let missing = |item: &Item| device.view.version(*item) == 0 && state.truth.version(*item) > 0;
        let shown = folded(seen);
        let moves = |item: &Item| match state.truth.newest_add(*item) {
            Some((seq, _)) => seq > shown.version(*item),
            None => {
                let coming = state.truth.readers[model.reader_of(log)].direct[inbox.taken.direct.into()..].iter();
                let coming = coming.map(|to| (to.op, to.item)).chain(ahead.iter().map(|line| (line.op, line.item)));
                coming.into_iter().any(|change| change == (Op::Delete, *item))
            }
        };
        shown.items().filter(missing).filter(|item| !moves(item)).all(|item| {
            let author = (item - 1) / OUTBOX_MAX;
            let is_forgotten = ahead.iter().any(|line| line.op == Op::Forget && line.author == author);
            let is_addressed = item >= addressed_item(0);
            let stays = || has_taken_in_the_edge(state, model.reader_of(log), inbox, author.into()) && !is_forgotten;
            !(is_addressed || stays()) || state.truth.wanted(model, log).version(item) == 0
        })
    })
}

/// A device shows what stands in its log above the floor at the place that the log gives it, so the changes of the log
/// put it where they put it for all other devices.
fn each_item_stands_where_the_log_puts_it(model: &Fanout, state: &State) -> bool {
    state.devices[..model.bounds.devices].iter().enumerate().all(|(slot, device)| {
        let Some(inbox) = state.inbox(slot % model.logs()) else { return true };
        if device.epoch != inbox.epoch || !(inbox.cut..=inbox.head()).contains(&device.offset) {
            return true;
        }
        let shown = folded(&inbox.log[..device.offset.into()]);
        let above = |item: &Item| inbox.floor.is_none_or(|floor| model.bounds.rank(*item, shown.moved(*item)) > floor);
        let both = shown.items().filter(|item| device.view.version(*item) > 0).filter(above);
        both.into_iter().all(|item| shown.moved(item) == device.view.moved(item))
    })
}

/// No device shows an item beside the one that came in its place.
fn what_gave_way_is_gone(model: &Fanout, state: &State) -> bool {
    state.devices[..model.bounds.devices].iter().all(|device| {
        let seen = |item: Item| item > 0 && device.view.version(item) > 0;
        let mut addressed = state.truth.addressed.iter().enumerate();
        addressed.all(|(n, of)| !(seen(addressed_item(n)) && seen(of.replaces)))
    })
}

/// Whether the inbox has taken in the edge as it is now.
fn has_taken_in_the_edge(state: &State, reader: usize, inbox: &Inbox, author: usize) -> bool {
    let generation = state.truth.edge(reader, author).generation;
    match inbox.taken_in[author] {
        0 => generation <= inbox.built_at.into(),
        taken_in => generation == u64::from(taken_in),
    }
}

/// An inbox that has taken in the edge holds all that push, pull and follow have been past.
fn no_mark_is_ahead(model: &Fanout, state: &State, log: usize, inbox: &Inbox) -> bool {
    let (reader, feed) = (model.reader_of(log), model.feed_of(log));
    (0..model.bounds.authors).all(|author| {
        let seen = state.truth.seen(reader, author);
        let edge = seen.door();
        if !edge.on || !has_taken_in_the_edge(state, reader, inbox, author) {
            return true;
        }
        let outbox = state.truth.records_of(model, author, feed, state.truth.head(author));
        let cut = Cut { progress: state.store.progress[author].into(), pull: PullSeq::from(inbox.taken.pull) };
        let past = |add: &_| is_past(cut, reader_no(reader), add, state.truth.pull_seq_of(author, add));
        let past = |add: &Record| add.seq <= seen.from.into() || past(add);
        let shown = state.truth.shown(model, (reader, author), &outbox, (edge, edge.from), past);
        shown.iter().all(|add| {
            let item = add.key.item.0 as Item;
            let holds = |line: &Line| {
                let (seq, generation) = (line.outbox_seq.into(), line.generation.into());
                (line.op, line.item, seq, generation) == (Op::Add, item, add.seq, edge.generation)
            };
            let below = inbox.floor.is_some_and(|floor| add.key.rank <= floor.into());
            below || inbox.log.iter().any(holds)
        })
    })
}

/// Whatever the store has lost: what push has finished is on every page, under every edge that the inbox has taken in.
fn page_shows_what_is_finished(model: &Fanout, state: &State, log: usize, inbox: &Inbox) -> bool {
    if !model.tracks_events() || state.unnoticed {
        return true;
    }
    let (reader, Some(page)) = (model.reader_of(log), page_now(model, state, log)) else { return true };
    (0..model.bounds.authors).all(|author| {
        let (seen, of) = (state.truth.seen(reader, author), &state.truth.authors[author]);
        if !seen.on || !has_taken_in_the_edge(state, reader, inbox, author) {
            return true;
        }
        let outbox = state.truth.records_of(model, author, model.feed_of(log), state.truth.head(author));
        let finished =
            |add: &Record| add.seq <= seen.from.into() || add.route != Route::Pull && add.seq <= of.finished.into();
        let door = (seen.door(), seen.door().from);
        let shown = state.truth.shown(model, (reader, author), &outbox, door, finished);
        shown.iter().all(|add| page.version(add.key.item.0 as Item) > 0)
    })
}

/// Push has come as far as the rebuild had.
fn is_level(state: &State, inbox: &Inbox) -> bool {
    inbox.ahead.iter().zip(&state.store.progress).all(|(ahead, progress)| progress.done >= *ahead)
}

/// No add stands behind a delete that ends it: of an outbox a later one; of what is addressed, whose records have no
/// number here, the last one if it deletes the item at the place of the add.
fn deletes_follow(inbox: &Inbox) -> bool {
    let adds = inbox.log.iter().enumerate().filter(|(_, line)| line.op == Op::Add);
    adds.into_iter().all(|(at, add)| {
        let mut deletes = inbox.log[..at].iter().filter(|line| line.op == Op::Delete && line.item == add.item);
        match add.outbox_seq {
            0 => deletes.next_back().is_none_or(|last| last.moved != add.moved),
            seq => deletes.all(|delete| delete.outbox_seq < seq),
        }
    })
}

fn no_device_is_ahead(model: &Fanout, state: &State) -> bool {
    state.devices[..model.bounds.devices].iter().enumerate().all(|(slot, device)| {
        let inbox = state.inbox(slot % model.logs());
        inbox.is_none_or(|inbox| inbox.epoch != device.epoch || device.offset <= inbox.head())
    })
}

/// Under one generation, what push brings ascends, and what pull brings does.
fn each_door_keeps_order(model: &Fanout, state: &State, inbox: &Inbox) -> bool {
    (0..model.bounds.authors).all(|author| {
        [true, false].into_iter().all(|pulled| {
            let by_route = |line: &&Line| {
                let at = usize::from(line.outbox_seq);
                let posted = at.checked_sub(1).and_then(|at| state.truth.authors[author].outbox.get(at));
                usize::from(line.author) == author
                    && posted.is_some_and(|posted| (posted.route == Route::Pull) == pulled)
            };
            let lines: Vec<(u8, u8)> =
                inbox.log.iter().filter(by_route).map(|line| (line.generation, line.outbox_seq)).collect();
            lines.is_sorted_by(|a, b| a < b)
        })
    })
}

/// Whether nothing is left to do for the system itself.
fn at_rest(model: &Fanout, state: &State) -> bool {
    let mut actions = vec![];
    model.internal(state, &mut actions);
    actions.is_empty()
}

fn devices_show_what_is_wanted(model: &Fanout, state: &State) -> bool {
    state.devices[..model.bounds.devices].iter().enumerate().all(|(slot, device)| {
        let log = slot % model.logs();
        state.inbox(log).is_none() || device.view == state.truth.wanted(model, log)
    })
}

fn pages_are_what_is_wanted(model: &Fanout, state: &State) -> bool {
    (0..model.logs()).all(|log| page_now(model, state, log).is_none_or(|page| page == state.truth.wanted(model, log)))
}

/// From one state in 64: taking turns, the system comes to rest soon, and right.
fn comes_to_rest(model: &Fanout, state: &State) -> bool {
    let sample = (state.spent, &state.store.progress, &state.truth.authors[0].outbox, state.executors[0]);
    if !Bytes::of(&sample, xxh3_64_with_seed).is_multiple_of(64) {
        return true;
    }
    let (mut state, mut actions) = (state.clone(), vec![]);
    for turn in 0..400 {
        actions.clear();
        model.internal(&state, &mut actions);
        if actions.is_empty() {
            return devices_show_what_is_wanted(model, &state) && pages_are_what_is_wanted(model, &state);
        }
        model.apply(&mut state, actions[turn % actions.len()]);
    }
    false
}
