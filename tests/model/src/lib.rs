//! The rules of fan-out, checked in every order in which things can happen.
//!
//! ```text
//!   world ──▶ Truth (outboxes, edges, classes, counters)          what is wanted is computed from this alone
//!               │ snapshots
//!   processes:  executors   progress, records ─▶ recipients ─▶ step (─▶ finish)
//!               follow      cut ─▶ edge and outbox ─▶ step and finish
//!               takers      where the inbox stands, news ─▶ step (and finish)
//!               rebuilds    progress ─▶ placeholder ─▶ snapshot (─▶ reopen) ─▶ swap, with what push noted beside it
//!               │ atomic steps
//!             Store (progress, inboxes, placeholders)                   may be rolled back
//!               │ read after a position, or Gone and page one
//!             devices                                             what is shown
//! ```
//!
//! Between any two arrows anything else may happen, and any process may die. Every order of these steps is gone
//! through, breadth first, and the properties are checked in every state (`visit`). If one breaks, the checker of
//! [`stateright`] finds the steps to there. The decisions are those of the product: `marks::push_verdict`,
//! `marks::edge_step_acts`, `marks::pushed_from`, `marks::note_belongs`, `fanout::plan`, `Progress` and its cut,
//! `rules::{shown, brought, is_for, is_past, is_news}`, `graph::effective_edge`, `change::route_of`, `Entry`,
//! `inboxes::floor_of_cut`, `feed::living`, `feed::first_log`. What the homes do around them is written out in `inbox`.
//!
//! # What passes
//!
//! Each configuration is a test, which visits every state that is reachable within its bounds. Only steps that commute
//! with all others are left out; the code says at each place why. [`configurations::ALL`] has the bounds. If the table
//! says nothing else, a configuration has one author, one reader, two records (deletes are among them), one process of
//! each kind and one device; and K, the number of items that a follow step brings from before the follow, is 1.
//!
//! | configuration | with | states |
//! |---|---|---|
//! | `push` | two executors, 3 records, an unfollow, a sleep | 709 771 |
//! | `push_in_batches` | 3 records in one step, 2 changes of the follow, a sleep | 611 634 |
//! | `push_to_two_readers` | two readers, a step for each, two executors, an unfollow, a sleep; no device | 1 102 521 |
//! | `follow` | two follow workers, two executors, 2 changes of the follow, a crash | 538 415 |
//! | `follow_three_times` | two follow workers, 3 changes of the follow | 99 089 |
//! | `follow_from_behind` | not followed at first, 3 records, 2 changes of the follow, a change of class | 572 962 |
//! | `follow_two` | two authors, one followed, 2 changes of the follows, a sleep; no deletes | 301 560 |
//! | `follow_inside_a_record` | not followed at first, a step for each reader, 2 changes of the follow | 6 235 |
//! | `cross_classes` | 3 records, 2 changes of class, an unfollow, two takers | 1 205 153 |
//! | `cross_classes_asleep` | a change of class, an unfollow, a sleep, two rebuilds at once | 1 178 210 |
//! | `pull` | pulled, updates too, 2 changes of the follow, two takers | 215 848 |
//! | `pull_two` | two pulled authors, one followed, 2 changes of the follows, two takers, a node that remembers; no deletes | 496 383 |
//! | `pull_two_asleep` | two pulled authors, an unfollow, a sleep; no deletes | 215 913 |
//! | `pull_little_by_little` | one pulled and one pushed author, 3 records, a take brings one, an unfollow, a change of class; no deletes | 301 040 |
//! | `pull_asleep` | pulled, 2 changes of the follow, a sleep | 454 713 |
//! | `follow_the_past` | 2 changes of the follow, which shows the whole past; two follow workers, two executors | 146 056 |
//! | `pull_the_past` | pulled, updates too, the same, a node that remembers | 37 504 |
//! | `past_and_trim` | not followed at first, 3 records in mixed display order, 2 changes of the follow, which shows the whole past, a cut; no deletes | 12 199 |
//! | `past_of_two` | two authors, one followed, 3 records in mixed display order, a follow or unfollow, which shows the whole past; no deletes | 5 436 |
//! | `rebuild` | two rebuilds at once, an unfollow, a sleep, a crash | 358 318 |
//! | `rebuild_overflows` | 3 records, a placeholder keeps one note, two rebuilds at once, an unfollow, a sleep | 1 442 521 |
//! | `trim` | not followed at first, 3 records in reversed display order, a follow, 2 cuts | 5 716 |
//! | `trim_two` | one pulled and one pushed author, 3 records in mixed display order, a rebuilt log holds one, a sleep, a cut | 105 387 |
//! | `trim_and_refollow` | pulled, 3 records in mixed display order, 2 changes of the follow, a cut; no deletes | 217 865 |
//! | `narrow` | 3 records, 2 of them narrowed to an audience, an unfollow, a sleep; many records in one step | 474 280 |
//! | `narrow_and_follow` | the same without the sleep, 2 changes of the follow | 214 648 |
//! | `narrow_to_two_readers` | two readers, a step for each, two executors, one record narrowed, an unfollow; no device | 88 712 |
//! | `narrow_pulled` | pulled, updates too, 3 records, 2 of them narrowed, an unfollow | 323 791 |
//! | `narrow_and_roll_back` | 2 records narrowed, an unfollow, a rollback; no deletes | 204 934 |
//! | `own` | two readers with a device each, of whom one is the author; a step for each, one record narrowed, 2 changes of the follows | 298 108 |
//! | `move_and_follow` | 2 moves, 2 changes of the follow | 502 668 |
//! | `move_asleep` | a move, an unfollow, a sleep | 133 145 |
//! | `move_pulled` | pulled, updates too, a move, a take brings one, an unfollow | 138 036 |
//! | `move_and_trim` | 3 records, a move, an unfollow, a cut | 184 531 |
//! | `move_in_the_past` | mixed display order, a move, 2 changes of the follow, which shows the whole past, a cut | 144 900 |
//! | `move_across_classes` | a move, a change of class, an unfollow | 113 205 |
//! | `move_for_everyone` | not followed, a move, a change of class, also to everyone's, a follow or unfollow | 188 651 |
//! | `move_narrowed` | one record narrowed, a move, an unfollow, a sleep; many records in one step | 253 279 |
//! | `move_and_roll_back` | 1 record, a move, an unfollow, a rollback | 91 644 |
//! | `move_direct` | no records, 2 addressed, one at a time, 2 moves, a cut, a sleep | 71 686 |
//! | `replaced` | no records, 2 addressed, one at a time, 2 that give way to others, a sleep; two devices of one inbox | 55 271 |
//! | `roll_back` | a rollback to any earlier time, an unfollow, a crash | 386 071 |
//! | `roll_back_two_workers` | a rollback, two executors, a sleep; no deletes | 350 800 |
//! | `roll_back_and_crash` | a rollback, two executors, a crash; no deletes | 142 906 |
//! | `roll_back_two_rebuilds` | 1 record, a rollback, two rebuilds at once, a sleep; no deletes | 74 540 |
//! | `roll_back_unasked` | a rollback, two executors that may begin where events are finished, a sleep; no deletes | 361 765 |
//! | `keep_followers` | two authors, an executor that may take the followers as they were read before, an unfollow, a sleep; no deletes | 36 049 |
//! | `keep_followers_and_refollow` | two executors that may do so, 3 records, 2 changes of the follow; no deletes | 163 729 |
//! | `roll_back_across_classes` | a rollback, a change of class, an unfollow | 530 672 |
//! | `feeds` | two feeds, a device each; two executors, 3 records, many in one step, an unfollow | 445 258 |
//! | `feeds_asleep` | two feeds, a device each; many records in one step, an unfollow, a sleep; no deletes | 77 895 |
//! | `feeds_named_meanwhile` | two feeds, a device each, the second named at any moment; not followed at first, 1 record, 2 changes of the follow, a crash | 142 239 |
//! | `feeds_pulled` | two feeds, a device each, the second named at any moment; pulled, an unfollow; no deletes | 670 984 |
//! | `feeds_direct` | the same; no records, 2 addressed, a sleep | 39 634 |
//! | `direct` | 1 record of a pulled author, 2 addressed, an unfollow, a block, two takers | 381 258 |
//! | `direct_asleep` | 3 addressed, one at a time, 2 sleeps, two takers, a crash | 283 052 |
//! | `shields` | pulled, a mute and its end, an unfollow, a change of class, a node that remembers | 247 901 |
//! | `everyone` | not followed, a change of class, also to everyone's, a follow or unfollow, a mute, a sleep | 1 165 568 |
//! | `everyone_and_another` | everyone's author and a pulled one, 2 changes of the follows; no deletes | 167 899 |
//!
//! An item that *moves* (S11) has two places, where it was posted and another one: an item of an odd number moves above
//! all that were posted, an even one below them, and a second move brings it back. A move is a delete and an add, two
//! records of one transaction that every door may bring in two steps. What *gives way* (S6) is deleted, and another
//! item comes for the same readers; two devices read the inbox at different moments.
//!
//! An *own* edge (S10) is a follow that shows the whole past, as in `follow_the_past`, `pull_the_past`, `past_and_trim`
//! and `past_of_two`: it is turned on and off, and brought, as any other edge. One rule asks whose edge it is,
//! `is_for`: what is narrowed is for its author too. That is what `own` adds.
//!
//! # What fails
//!
//! Each of the [variants](variants::Variant) leaves a rule out, and one of these configurations then fails. So each
//! configuration passes because of its rules. `cargo test -p feedgate-model --test variants -- --nocapture` prints the
//! traces.
//!
//! # Larger
//!
//! `cargo run --release -p feedgate-model -- NAME+what=n…` goes through a configuration with other bounds. [ADR 9]
//! tells how far that has been done.
//!
//! [ADR 9]: ../../../docs/adr/0009-one-pull-number.md
//!
//! # What is not covered
//!
//! - Rankings, private authors, and lists: an audience is a set of followers that is chosen anew for each item. To the
//!   doors, what a ranking changes is addressed to its reader.
//! - Larger worlds: more than two authors or readers, more than three records of one author, more than two processes of
//!   a kind, K beyond 1, and more things at once than the table says. In particular no configuration has everything.
//! - Confused states: states are compared by 64 bits. In a million states two look alike with a chance of 1 in 37
//!   million, and then one of them is not continued.
//! - Whether the stores keep the promises of their traits. The conformance suite and the tests over real stores check
//!   that.
//! - The race of an edit or a delete with its body: here a body comes with the read that needs it.
//! - Windows of deep pages, cursors, and the `limit` of a page.
//! - More than one named feed, or a named feed with two readers.
//! - A worker that reads once for two inboxes: here it reads for one, then for the other.
//! - Caps and times to live; session tokens (I17); memory (I18).
//! - The count of followers and its threshold: here a class may change at any moment instead.
//! - Time: in every step, the epochs of a store that was rolled back count no more at once, as the stores promise.
//! - That all work ends is checked from one state in 64, under one order of turns.

mod archive;
mod bounds;
pub mod configurations;
mod device;
mod epochs;
mod executor;
mod follow;
mod inbox;
mod news;
mod numbers;
mod processes;
mod properties;
mod rebuild;
mod shared;
mod state;
pub mod variants;
mod visit;
mod world;

use std::fmt::Debug;

use feedgate_common::change::Class;
use feedgate_common::{FeedId, InboxKey, Op};
use stateright::{Model, Property};

pub use bounds::{Bounds, Ranks};
use state::{AUTHORS, Author, Device, Inbox, Item, LOGS, READERS, Reader, Reopened, Row, Shared, State, Store, Truth};
use variants::Variant;
pub use visit::Visited;

/// The model: a configuration, and the rule that is broken in it, if one is.
#[derive(Clone, Copy, Debug)]
pub struct Fanout {
    /// How large the configuration is, and how often each thing may happen.
    pub bounds: Bounds,
    /// The rule that is broken; `None` for the product as it is.
    pub variant: Option<Variant>,
    /// The name of the property that is looked at alone; `None` for all.
    pub asked: Option<&'static str>,
}

/// Who can crash without leaving more behind than work that comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// A worker that fans out an author's records.
    Executor,
    /// A node that rebuilds an inbox.
    Rebuild,
}

/// One thing that happens; a trace is a list of these. Numbers name authors, readers and items, `slot` the process that
/// acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "a line of a trace says the same as the function it calls; fields are the words of the module"
)]
pub enum Action {
    // What users, backends, time and faults do.
    Add { author: usize, feed: usize },
    Narrow { author: usize, feed: usize, to: u8 },
    Edit { item: Item },
    Delete { item: Item },
    Move { item: Item },
    Replace { item: Item },
    Send { author: usize, feed: usize },
    Classify { author: usize, class: Class },
    Follow { reader: usize, author: usize },
    Unfollow { reader: usize, author: usize },
    Shield { reader: usize, author: usize, shield: u8, up: bool },
    NameFeed,
    Sleep { log: usize },
    Trim { log: usize, upto: u8 },
    CopyStore,
    RollBack,
    Notice,
    Crash { process: Process, slot: usize },
    CrashBeforeCommit { author: usize },
    // The calls of a worker that pushes, one by one.
    PushBegin { slot: usize, author: usize },
    PushBeginUnasked { slot: usize, author: usize },
    PushRecipients { slot: usize },
    PushRecipientsKept { slot: usize },
    PushStep { slot: usize },
    PushFinish { slot: usize },
    PushFill { slot: usize },
    // The calls of a worker that takes follow steps.
    FollowBegin { slot: usize, reader: usize, author: usize },
    FollowRead { slot: usize },
    FollowStep { slot: usize, crash: bool },
    FollowNext { slot: usize },
    // The calls of a reader or a worker that takes in news.
    TakeBegin { slot: usize, log: usize, worker: bool },
    TakeStep { slot: usize, crash: bool },
    TakeNext { slot: usize },
    TakeFinish { slot: usize },
    // The calls of a node that rebuilds.
    RebuildBegin { slot: usize, log: usize },
    RebuildPlaceholder { slot: usize },
    RebuildRead { slot: usize },
    RebuildReopen { slot: usize },
    RebuildSwap { slot: usize },
    // The reads of a device.
    DeviceRead { slot: usize },
    DevicePage { slot: usize },
}

impl Fanout {
    /// The product, in a configuration.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, variant: None, asked: None }
    }

    /// The names of the properties that `state` does not have.
    pub fn broken(&self, state: &State) -> Vec<&'static str> {
        properties::broken(self, state)
    }

    /// Every pair of a reader and an author, as numbers.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let authors = self.bounds.authors;
        (0..self.bounds.readers).flat_map(move |reader| (0..authors).map(move |author| (reader, author)))
    }

    /// How many inboxes there may be.
    fn logs(&self) -> usize {
        self.bounds.readers * self.bounds.feeds
    }

    /// Whether the reader is the author.
    fn is_own(&self, reader: usize, author: usize) -> bool {
        self.bounds.own && (reader, author) == (0, 0)
    }

    /// The feed whose entries an inbox holds.
    fn feed_of(&self, log: usize) -> FeedId {
        FeedId(if self.bounds.feeds > 1 { log as u16 } else { 0 })
    }

    /// The reader to whom an inbox belongs.
    fn reader_of(&self, log: usize) -> usize {
        if self.bounds.feeds > 1 { 0 } else { log }
    }

    /// The number of the inbox of (reader, feed).
    fn log_of(&self, reader: usize, feed: FeedId) -> usize {
        reader + usize::from(feed.0)
    }

    /// The key of an inbox, in the type of the product.
    fn key_of(&self, log: usize) -> InboxKey {
        InboxKey { reader: state::reader_no(self.reader_of(log)), feed: self.feed_of(log) }
    }

    /// Whether the events of outboxes are followed: only where the progress can go back is an event more than the
    /// distance between progress and outbox head.
    fn tracks_events(&self) -> bool {
        self.bounds.rollbacks > 0 || self.variant == Some(Variant::OutstandingUntilRelayed)
    }

    /// The state after an action.
    fn after(&self, last: &State, action: Action) -> State {
        let mut next = last.clone();
        self.apply(&mut next, action);
        next.seal();
        next
    }

    /// Slots are kept sorted and idle ones come first, so equal slots stand side by side; one of them speaks for all.
    fn distinct<T: PartialEq>(slots: &[T]) -> impl Iterator<Item = (usize, &T)> {
        slots.iter().enumerate().filter(move |(slot, process)| *slot == 0 || slots[slot - 1] != **process)
    }

    /// What the system does by itself.
    fn internal(&self, state: &State, actions: &mut Vec<Action>) {
        executor::actions(self, state, actions);
        follow::actions(self, state, actions);
        news::actions(self, state, actions);
        rebuild::actions(self, state, actions);
        device::actions(self, state, actions);
        if state.unnoticed {
            actions.push(Action::Notice);
        }
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Add { author, feed } => world::add(self, state, author, feed),
            Action::Narrow { author, feed, to } => world::narrow(self, state, author, feed, to),
            Action::Edit { item } => world::change(self, state, Op::Update, item),
            Action::Delete { item } => world::change(self, state, Op::Delete, item),
            Action::Move { item } => world::move_to_the_other_place(self, state, item),
            Action::Replace { item } => world::replace(self, state, item),
            Action::Send { author, feed } => world::send(self, state, author, feed),
            Action::Classify { author, class } => world::classify(state, author, class),
            Action::Follow { reader, author } | Action::Unfollow { reader, author } => {
                let follows = matches!(action, Action::Follow { .. });
                world::change_row(self, state, reader, author, |row| row.follows = follows);
                state.spent.follows += 1;
            }
            Action::Shield { reader, author, shield, up } => {
                let set = |row: &mut Row| row.shields = if up { row.shields | shield } else { row.shields & !shield };
                world::change_row(self, state, reader, author, set);
                state.spent.shields += 1;
            }
            Action::NameFeed => state.truth.feeds += 1,
            Action::Sleep { log } => {
                state.store.inboxes[log] = None;
                state.store.placeholders[log] = Default::default();
                state.spent.sleeps += 1;
            }
            Action::Trim { log, upto } => {
                state.store.inboxes[log].iter_mut().for_each(|inbox| inbox.trim(self, upto));
                state.spent.trims += 1;
            }
            Action::CopyStore => state.snapshot = Some(state.store.clone()),
            Action::RollBack => world::roll_back(self, state),
            Action::Notice => world::notice(state),
            Action::Crash { process, slot } => {
                match process {
                    Process::Executor => state.executors[slot] = Default::default(),
                    Process::Rebuild => state.rebuilds[slot] = Default::default(),
                }
                state.spent.crashes += 1;
            }
            Action::CrashBeforeCommit { author } => {
                world::crash_before_commit(state, author);
                state.spent.crashes += 1;
            }
            Action::PushBegin { slot, author } => executor::begin(self, state, slot, author),
            Action::PushBeginUnasked { slot, author } => executor::begin_unasked(self, state, slot, author),
            Action::PushRecipients { slot } => executor::recipients(self, state, slot),
            Action::PushRecipientsKept { slot } => executor::recipients_kept(self, state, slot),
            Action::PushStep { slot } => executor::step(self, state, slot),
            Action::PushFinish { slot } => executor::finish(self, state, slot),
            Action::PushFill { slot } => executor::fill(state, slot),
            Action::FollowBegin { slot, reader, author } => follow::begin(self, state, slot, reader, author),
            Action::FollowRead { slot } => follow::read(self, state, slot),
            Action::FollowStep { slot, crash } => {
                follow::step(self, state, slot, crash);
                state.spent.crashes += u8::from(crash);
            }
            Action::FollowNext { slot } => follow::next(self, state, slot),
            Action::TakeBegin { slot, log, worker } => news::begin(self, state, slot, log, worker, u8::MAX),
            Action::TakeStep { slot, crash } => {
                news::step(self, state, slot, crash);
                state.spent.crashes += u8::from(crash);
            }
            Action::TakeNext { slot } => news::next(self, state, slot),
            Action::TakeFinish { slot } => news::finish_all(state, slot),
            Action::RebuildBegin { slot, log } => rebuild::begin(self, state, slot, log),
            Action::RebuildPlaceholder { slot } => rebuild::placeholder(self, state, slot),
            Action::RebuildRead { slot } => rebuild::read(self, state, slot),
            Action::RebuildReopen { slot } => rebuild::reopen(state, slot),
            Action::RebuildSwap { slot } => rebuild::swap(self, state, slot),
            Action::DeviceRead { slot } => device::read(self, state, slot),
            Action::DevicePage { slot } => device::page(self, state, slot),
        }
        epochs::renumber(state);
        state.executors[..self.bounds.executors].sort_unstable();
        state.follow_workers[..self.bounds.follow_workers].sort_unstable();
        state.takers[..self.bounds.takers].sort_unstable();
        state.rebuilds[..self.bounds.rebuilds].sort_unstable();
    }
}

impl Model for Fanout {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let author = |class| Author {
            outbox: vec![],
            class,
            everyone_since: (class == Class::Everyone).then_some(0),
            finished: 0,
            reopened: Reopened::No,
            job: false,
        };
        let mut counter = 0;
        let mut rows = [Row::default(); AUTHORS];
        for (row, follows) in rows.iter_mut().zip(self.bounds.follows) {
            if follows {
                counter += 1;
                *row = Row { held: true, follows, generation: counter, finished: counter, ..Row::default() };
            }
        }
        let inbox = Inbox {
            epoch: 1,
            log: vec![],
            cut: 0,
            floor: None,
            built_at: counter,
            taken_in: [0; AUTHORS],
            ahead: [0; AUTHORS],
            taken: state::Taken::default(),
        };
        let feeds = if self.bounds.named_meanwhile { 1 } else { self.bounds.feeds as u8 };
        let present = |log| (log < self.logs() && self.feed_of(log).0 < u16::from(feeds)).then(|| inbox.clone());
        let mut first = State {
            truth: Shared::new(Truth {
                authors: self.bounds.classes.map(author),
                readers: [(); READERS].map(|()| Reader { counter, rows, ..Reader::default() }),
                addressed: vec![],
                pull_seq: 0,
                feeds,
                epoch: 1,
            }),
            store: Shared::new(Store {
                progress: [Default::default(); AUTHORS],
                inboxes: [present(0), present(1)],
                placeholders: Default::default(),
            }),
            least_epoch: 1,
            snapshot: None,
            unnoticed: false,
            lost: [(0, 0); LOGS],
            looked: [(0, 0); LOGS],
            kept: [None; AUTHORS],
            executors: Default::default(),
            follow_workers: Default::default(),
            takers: Default::default(),
            rebuilds: Default::default(),
            devices: [Device { epoch: 1, ..Device::default() }; 2],
            spent: Default::default(),
            reused: false,
            went_back: false,
            twice: false,
        };
        first.seal();
        vec![first]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.internal(state, actions);
        world::actions(self, state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        Some(self.after(last, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("all", properties::hold)]
    }
}
