//! One rule stopped before each of its store calls in turn, while the whole rest of the world goes on.
//!
//! ```text
//!   push step     ── call ── call ──┃ stopped ┃────────────────── call ── done
//!   the intruder                     follow, edge step, publish …               then drain and compare
//! ```
//!
//! Random schedules rarely put five whole steps into one gap of another; this puts every intrusion
//! into every gap. In the end the reader must hold what the truth says, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use feedgate_common::archive::{Audience, Below, Event, Publish, Write, Written};
use feedgate_common::change::Class;
use feedgate_common::feed::{Feeds, TakenIn};
use feedgate_common::{Archive, Body, Bucket, FeedId, InboxKey, Inboxes, ItemId, UserId, UserNo};
use feedgate_embedded::Embedded;
use feedgate_tests::gate::{Gate, Gated};
use feedgate_tests::oracle::work_off_all;
use feedgate_tests::park::{block_on, poll_until};
use feedgate_tests::rules::Rules;
use feedgate_timeline::fanout::Step;

const BUCKETS: u16 = 1;
const BACKFILL: usize = 10;
const GAPS_MAX: usize = 30;

/// What may be stopped.
#[derive(Debug, Clone, Copy)]
enum Stopped {
    Push,
    Edge,
    Visit,
}

/// What may happen meanwhile, whole.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    Follow,
    Unfollow,
    Publish,
    Delete,
    Push,
    Edge,
    Visit,
    Sleep,
}

use Meanwhile::{Delete, Edge, Follow, Publish as Post, Push, Sleep, Unfollow, Visit};

/// Each begins with the reader as it stands and is over before the stopped rule goes on.
const INTRUSIONS: &[&[Meanwhile]] = &[
    &[Delete],
    &[Post, Push],
    &[Follow, Post],
    &[Follow, Edge, Post],
    &[Follow, Edge, Post, Push],
    &[Post, Follow, Edge],
    &[Unfollow],
    &[Unfollow, Edge],
    &[Unfollow, Follow],
    &[Unfollow, Edge, Follow, Edge, Post],
    &[Unfollow, Post, Push, Follow, Edge],
    &[Visit, Post],
    &[Visit, Post, Push],
    &[Follow, Visit, Post],
    &[Sleep, Post, Push],
    &[Sleep, Visit, Post],
    &[Sleep, Visit, Follow, Edge, Post],
];

/// The state of the reader's edge at the beginning.
#[derive(Debug, Clone, Copy)]
enum Began {
    Off,
    /// The edge is on, and its follow step is still to come.
    On,
    TakenIn,
}

/// The state of the world at the beginning.
#[derive(Debug, Clone, Copy)]
struct Start {
    edge: Began,
    visited: bool,
    /// A post that push has not reached yet.
    posted: bool,
}

struct World {
    archive: Arc<dyn Archive>,
    rules: Rules,
    gate: Gate,
    /// The rules of another process, which stops before each call.
    stopping: Arc<Rules>,
    /// The rules of a third process, which stops at a gate of its own.
    builder: Arc<Rules>,
    builder_gate: Gate,
    names: [UserId; 3],
    author: UserNo,
    reader: UserNo,
}

fn rules(archive: Arc<dyn Archive>, inboxes: Arc<dyn Inboxes>) -> Rules {
    Rules::new(Arc::new(Feeds::new(archive, inboxes, BACKFILL)))
}

impl World {
    fn new(stores: &Embedded, number: usize) -> Self {
        let (gate, builder_gate) = (Gate::default(), Gate::default());
        let process = |gate: &Gate| {
            let archive = Arc::new(Gated { gate: gate.clone(), store: stores.archive.clone() });
            let inboxes = Arc::new(Gated { gate: gate.clone(), store: stores.inboxes.clone() });
            rules(archive, inboxes)
        };
        let names = ["author", "reader", "other"].map(|role| format!("{role}-{number}").parse().unwrap());
        let nos = block_on(stores.archive.intern(&names)).unwrap();
        let world = Self {
            archive: stores.archive.clone(),
            rules: rules(stores.archive.clone(), stores.inboxes.clone()),
            stopping: Arc::new(process(&gate)),
            builder: Arc::new(process(&builder_gate)),
            gate,
            builder_gate,
            author: nos[0],
            reader: nos[1],
            names,
        };
        // Somebody else follows all along, so that a push step has something to do.
        block_on(world.rules.feeds.rebuild(InboxKey::main(nos[2]))).unwrap();
        world.write(Write::Follow { reader: world.names[2].clone(), author: world.names[0].clone() });
        block_on(world.rules.fan_out.step_edges(nos[2])).unwrap();
        world
    }

    fn write(&self, write: Write) -> Written {
        block_on(self.archive.write(vec![write], 1)).unwrap().remove(0).unwrap()
    }

    fn publish(&self) {
        self.write(Write::Publish(Publish::new(self.names[0].clone(), Body::parse("{}".into()).unwrap())));
    }

    fn key(&self) -> InboxKey {
        InboxKey::main(self.reader)
    }

    fn begin(&self, start: Start) {
        self.publish();
        self.drain();
        if start.visited {
            self.happen(Visit);
        }
        match start.edge {
            Began::Off => {}
            Began::On => self.happen(Follow),
            Began::TakenIn => {
                self.happen(Follow);
                self.happen(Edge);
            }
        }
        if start.posted {
            self.publish();
        }
    }

    fn happen(&self, what: Meanwhile) {
        let (reader, author) = (self.names[1].clone(), self.names[0].clone());
        match what {
            Follow => drop(self.write(Write::Follow { reader, author })),
            Unfollow => drop(self.write(Write::Unfollow { reader, author })),
            Post => self.publish(),
            Delete => drop(self.write(Write::Delete { item: self.newest(), if_version: None })),
            Push => self.drain(),
            Edge => _ = block_on(self.rules.fan_out.step_edges(self.reader)).unwrap(),
            Visit => block_on(self.rules.feeds.rebuild(self.key())).unwrap(),
            Sleep => block_on(self.rules.feeds.inboxes().discard(self.key())).unwrap(),
        }
    }

    fn newest(&self) -> ItemId {
        block_on(self.archive.profile(self.author, FeedId::MAIN, None, 1)).unwrap()[0].item
    }

    fn drain(&self) {
        while !matches!(block_on(self.rules.fan_out.advance(self.author, Bucket(0))).unwrap(), Step::AtHead(_)) {}
    }

    fn stopped(&self, which: Stopped) -> Pin<Box<dyn Future<Output = ()>>> {
        let (rules, author, reader) = (self.stopping.clone(), self.author, self.reader);
        Box::pin(async move {
            match which {
                Stopped::Push => _ = rules.fan_out.advance(author, Bucket(0)).await.unwrap(),
                Stopped::Edge => _ = rules.fan_out.step_edges(reader).await.unwrap(),
                Stopped::Visit => rules.feeds.rebuild(InboxKey::main(reader)).await.unwrap(),
            }
        })
    }

    /// What the reader's log shows, and what it should: everything is worked off first.
    fn check(&self, what: &str) {
        self.happen(Edge);
        self.drain();
        let wanted =
            block_on(self.archive.feed_below(InboxKey::main(self.reader), Below::newest(1000), BACKFILL)).unwrap();
        let page = block_on(self.rules.pages.page(self.key(), None, 1000)).unwrap();
        let shown: BTreeSet<ItemId> = page.items.iter().map(|item| item.id).collect();
        assert_eq!(shown, wanted.iter().map(|add| add.key.item).collect(), "{what}");
    }
}

fn starts() -> impl Iterator<Item = Start> {
    let edges = [Began::Off, Began::On, Began::TakenIn].into_iter();
    edges.flat_map(|edge| (0..4).map(move |bits| Start { edge, visited: bits & 1 > 0, posted: bits & 2 > 0 }))
}

/// One world; false if the rule was over before gap number `gap`.
fn intrude(world: &World, which: Stopped, gap: usize, meanwhile: &[Meanwhile]) -> bool {
    let mut stopped = world.stopped(which);
    for _ in 0..=gap {
        if poll_until(stopped.as_mut(), || world.gate.reached()).is_ready() {
            return false;
        }
    }
    for what in meanwhile {
        world.happen(*what);
    }
    for _ in 0..1000 {
        if poll_until(stopped.as_mut(), || world.gate.reached()).is_ready() {
            return true;
        }
    }
    panic!("{which:?} does not end after {meanwhile:?} in gap {gap}");
}

#[test]
fn i4_whatever_happens_in_any_gap_of_a_rule_the_reader_ends_with_what_the_truth_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), BUCKETS).unwrap();
    let mut worlds = 0;
    for which in [Stopped::Push, Stopped::Edge, Stopped::Visit] {
        for start in starts() {
            for meanwhile in INTRUSIONS {
                for gap in 0..GAPS_MAX {
                    worlds += 1;
                    let world = World::new(&stores, worlds);
                    world.begin(start);
                    if !intrude(&world, which, gap, meanwhile) {
                        break;
                    }
                    world.check(&format!("{which:?} stopped in gap {gap} from {start:?}, meanwhile {meanwhile:?}"));
                }
            }
        }
    }
    assert!(worlds > 1000, "{worlds} worlds");
}

/// What becomes of a rebuild that was stopped.
#[derive(Debug, Clone, Copy)]
enum Rebuild {
    Ends,
    /// The rebuild dies with its process, and leaves its token.
    Dies,
}

/// One rebuild, and a follow or an item for the reader that came when the rebuild had begun: both works are stopped
/// somewhere, and the rebuild ends first or never does.
#[test]
fn i4_a_rebuild_that_ends_or_dies_in_any_gap_of_a_step_keeps_nothing_out_and_nobody_up() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), BUCKETS).unwrap();
    let mut worlds = 0;
    for late in [Late::Addressed, Late::Unfollowed] {
        for ending in [Rebuild::Ends, Rebuild::Dies] {
            let before = worlds;
            for begun in 0..GAPS_MAX {
                for gap in 0..GAPS_MAX {
                    worlds += 1;
                    let world = World::new(&stores, worlds);
                    if !world.meets_a_build(late, ending, begun, gap) {
                        break;
                    }
                }
            }
            assert!(worlds - before > 10 + GAPS_MAX, "{worlds} worlds");
        }
    }
}

impl World {
    /// False if the rebuild was over before gap number `begun`, or the step before `gap`.
    fn meets_a_build(&self, late: Late, ending: Rebuild, begun: usize, gap: usize) -> bool {
        self.begin(Start { edge: Began::Off, visited: false, posted: false });
        let (builder, key) = (self.builder.clone(), self.key());
        let mut rebuild: Pin<Box<dyn Future<Output = ()>>> =
            Box::pin(async move { builder.feeds.rebuild(key).await.unwrap() });
        if (0..=begun).any(|_| poll_until(rebuild.as_mut(), || self.builder_gate.reached()).is_ready()) {
            return false;
        }
        match late {
            Late::Unfollowed => self.happen(Follow),
            Late::Addressed => {
                let audience = Audience::Users(vec![self.names[1].clone()]);
                let post = Publish::new(self.names[0].clone(), Body::parse("{}".into()).unwrap());
                self.write(Write::Publish(Publish { audience, ..post }));
            }
        }
        let mut step = self.work(late);
        if (0..=gap).any(|_| poll_until(step.as_mut(), || self.gate.reached()).is_ready()) {
            return false;
        }
        self.builder_gate.open();
        match ending {
            Rebuild::Ends => block_on(rebuild),
            Rebuild::Dies => drop(rebuild),
        }
        self.gate.open();
        let finished = block_on(step);
        block_on(self.archive.finish(&[finished])).unwrap();
        block_on(work_off_all(&self.rules)).unwrap();
        let page = block_on(self.rules.pages.page(self.key(), None, 10)).unwrap();
        assert_eq!(
            page.items.len(),
            1,
            "{late:?}: the rebuild {ending:?} in gap {begun}, the step stopped in gap {gap}"
        );
        true
    }
}

/// What a feed that gets its name meanwhile has to take in.
#[derive(Debug, Clone, Copy)]
enum Late {
    Addressed,
    Unfollowed,
}

impl World {
    /// Names a feed in which the reader has an inbox at once, with something to take in.
    fn name_a_feed(&self, late: Late) -> InboxKey {
        let feed = block_on(self.archive.intern_feeds(&["named".into()])).unwrap()[0];
        let key = InboxKey { feed, ..self.key() };
        block_on(self.rules.feeds.rebuild(key)).unwrap();
        let post = Publish { feed, ..Publish::new(self.names[0].clone(), Body::parse("{}".into()).unwrap()) };
        match late {
            Late::Addressed => {
                let audience = Audience::Users(vec![self.names[1].clone()]);
                self.write(Write::Publish(Publish { audience, ..post }));
            }
            Late::Unfollowed => {
                self.write(Write::Publish(post));
                self.drain();
                self.happen(Unfollow);
            }
        }
        key
    }

    /// The work that the same was brought by to the feeds that were there.
    fn work(&self, late: Late) -> Pin<Box<dyn Future<Output = Event>>> {
        let (rules, reader) = (self.stopping.clone(), self.reader);
        Box::pin(async move {
            match late {
                Late::Addressed => rules.fan_out.take_direct(reader).await.unwrap().0,
                Late::Unfollowed => rules.fan_out.step_edges(reader).await.unwrap().0.remove(0),
            }
        })
    }
}

#[test]
fn i10_what_a_feed_has_not_taken_in_that_was_named_meanwhile_is_not_finished() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    for (late, shown) in [(Late::Addressed, 1), (Late::Unfollowed, 0)] {
        let mut gaps = 0;
        for gap in 0..GAPS_MAX {
            let dir = tempfile::tempdir().unwrap();
            let world = World::new(&Embedded::open(dir.path(), BUCKETS).unwrap(), gap);
            world.begin(Start { edge: Began::TakenIn, visited: true, posted: false });
            let mut work = world.work(late);
            if (0..=gap).any(|_| poll_until(work.as_mut(), || world.gate.reached()).is_ready()) {
                break;
            }
            gaps += 1;
            let named = world.name_a_feed(late);
            world.gate.open();
            let finished = block_on(work);
            block_on(world.archive.finish(&[finished])).unwrap();
            block_on(work_off_all(&world.rules)).unwrap();
            let page = block_on(world.rules.pages.page(named, None, 10)).unwrap();
            assert_eq!(page.items.len(), shown, "{late:?} in gap {gap}");
        }
        assert!(gaps > 2, "{gaps} gaps");
    }
}

/// A read takes in what is pulled; meanwhile the author posts once more.
#[test]
fn i4_a_read_that_pulls_passes_nothing_by_that_is_posted_in_any_gap_of_it() {
    passes_nothing_by(async |rules, key| _ = rules.changes.head(key).await.unwrap());
}

/// A gateway lets the inbox take in what is pulled, before anybody reads; meanwhile the author posts once more.
#[test]
fn i4_an_inbox_that_takes_in_what_is_pulled_passes_nothing_by_that_is_posted_in_any_gap_of_it() {
    passes_nothing_by(async |rules, key| {
        let taken = rules.changes.take_in(&[key]).await.unwrap();
        let TakenIn { head, entries } = taken[0].clone().expect("it took in the first post");
        let log = rules.feeds.inboxes().log(key).await.unwrap().unwrap();
        let last = log.entries.iter().position(|numbered| numbered.seq == head.offset).unwrap();
        assert_eq!(entries, log.entries[last + 1 - entries.len()..=last], "the log holds what it is said to hold");
    });
}

fn passes_nothing_by(take: impl AsyncFn(Arc<Rules>, InboxKey) + Copy + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    let mut gaps = 0;
    for gap in 0..GAPS_MAX {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(&Embedded::open(dir.path(), BUCKETS).unwrap(), gap);
        world.begin(Start { edge: Began::TakenIn, visited: true, posted: false });
        world.write(Write::Classify { author: world.names[0].clone(), class: Class::Pull });
        world.publish();
        let hear = |rules: &Rules| rules.changes.heard_pull(block_on(world.archive.pull_head()).unwrap());
        hear(&world.stopping);
        let (rules, key) = (world.stopping.clone(), world.key());
        let mut read: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move { take(rules, key).await });
        if (0..=gap).any(|_| poll_until(read.as_mut(), || world.gate.reached()).is_ready()) {
            break;
        }
        gaps += 1;
        world.publish();
        world.gate.open();
        block_on(read);
        hear(&world.rules);
        world.check(&format!("a read stopped in gap {gap}"));
    }
    assert!(gaps > 2, "{gaps} gaps");
}
