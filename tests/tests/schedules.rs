//! The rules of fan-out under random interleavings, over the real embedded stores, against the oracle.
//!
//! Each seed makes a small world: a few authors who are followed, muted, blocked, reclassified and who cross the
//! threshold of pull at one follower; readers of two feeds with two devices each, at two nodes, of which the second
//! lets follows show the whole past. Two readers have rankings, and authors are told of reactions by lines. A schedule
//! starts push steps, follow steps, deliveries of direct items, renewals of rankings, first visits, reads, walks over
//! pages, dormancy and backend writes, lets one of them make one store call at a time, and drops some half way, as a
//! crash would. Only reactions, and what is seen of them, happen at once. Then everything that is outstanding is worked
//! off, and every device and every walk must show what the oracle says.
//!
//! ```text
//!   FEEDGATE_SEED=n          cargo test -p feedgate-tests --test schedules      repeats one seed
//!   FEEDGATE_SEEDS=n         …                                                 tries the first n seeds
//!   FEEDGATE_SCHEDULE=file   …                                                 repeats what a failure has printed
//! ```

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use feedgate_common::accept::Policy;
use feedgate_common::change::Class;
use feedgate_common::feed::Feeds;
use feedgate_common::inboxes::Log;
use feedgate_common::{Archive, Bucket, Entry, Inboxes, Millis, Op as Change};
use feedgate_embedded::inboxes::Settings;
use feedgate_embedded::{Database, EmbeddedArchive, EmbeddedInboxes};
use feedgate_tests::gate::{Gate, Gated};
use feedgate_tests::oracle::{
    AUTHORS, BACKFILL, Device, Imagined, Inbox, NOTES, NOW, Node, Op, Oracle, RANKED, Serves, Shown, USERS, User,
    World, given, hold, name_feeds, name_notes, name_rankings, rankings, seeds, some_inbox, walk, whole_world,
    work_off, work_off_all,
};
use feedgate_tests::park::{block_on, poll_until};
use feedgate_tests::rules::Rules;
use futures_util::lock::Mutex;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

const BUCKETS: u16 = 2;
const PULL_ABOVE: u64 = 1;
const SEEDS: u64 = 600;
const TICKS: usize = 220;
const NODES: usize = 2;
/// How many of them are under way at most.
const ACTORS: usize = 5;
/// How long an inbox is kept that nobody reads, in ticks.
const UNREAD: u64 = 40;

/// What some process may begin at any time.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Action {
    Write(Op),
    /// The nth of what is outstanding is worked off.
    Work(usize),
    /// Work that comes again, however late.
    Push(User, u16),
    Round(User),
    Edge(User),
    Direct(User),
    Visit(Inbox),
    Sync(Inbox),
    Walk(Inbox, usize),
    Touch(Inbox),
    Sleep(Inbox),
    Expire,
    /// An edit or a delete is brought to so many rankings at most.
    Renew(usize),
    /// The node hears how far pull records go.
    Hear,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Step {
    /// Starts an action at the node of this number.
    Start(usize, Action),
    /// The nth of those under way makes one store call.
    Call(usize),
    /// The nth of those under way is no more.
    Drop(usize),
}

fn imagine(seed: u64) -> Vec<Step> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut history = Imagined::new(USERS, AUTHORS);
    let mut steps = vec![];
    for _ in 0..TICKS {
        if rng.random_bool(0.4) {
            steps.push(Step::Start(rng.random_range(0..NODES), action(&mut rng, &mut history)));
        }
        let which = rng.random_range(0..60);
        steps.push(if rng.random_bool(0.03) { Step::Drop(which) } else { Step::Call(which) });
    }
    steps
}

fn action(rng: &mut SmallRng, history: &mut Imagined) -> Action {
    let author = if rng.random_bool(0.6) { 0 } else { rng.random_range(0..AUTHORS) };
    let users = if rng.random_bool(0.6) { 2 } else { USERS };
    let user = rng.random_range(0..users);
    let inbox = some_inbox(rng, user);
    match rng.random_range(0..100) {
        0..38 => Action::Write(history.op(rng)),
        38..50 => Action::Work(rng.random_range(0..4)),
        50..56 => Action::Push(author, rng.random_range(0..BUCKETS)),
        56..60 => Action::Round(author),
        60..65 => Action::Edge(user),
        65..68 => Action::Direct(user),
        68..71 => Action::Visit(inbox),
        71..82 => Action::Sync(inbox),
        82..85 => Action::Walk(inbox, rng.random_range(1..4)),
        85..86 => Action::Touch(inbox),
        86..89 => Action::Sleep(inbox),
        89..90 => Action::Expire,
        90..92 => Action::Renew(rng.random_range(1..3)),
        _ => Action::Hear,
    }
}

/// The stores, and how many worlds live in them.
struct Stores {
    archive: Arc<dyn Archive>,
    /// The Archive once more, with a policy by which a follow shows the whole past.
    whole_past: Arc<dyn Archive>,
    inboxes: Arc<dyn Inboxes>,
    worlds: AtomicU64,
}

impl Stores {
    fn open(dir: &Path) -> Self {
        let database = Database::open(&dir.join("archive")).unwrap();
        let archive = block_on(EmbeddedArchive::open(database, BUCKETS)).unwrap().with_pull_above(PULL_ABOVE);
        block_on(name_feeds(&archive)).unwrap();
        block_on(name_rankings(&archive)).unwrap();
        block_on(name_notes(&archive)).unwrap();
        let settings = Settings { buckets: BUCKETS, ..Settings::default() };
        let inboxes = EmbeddedInboxes::open(&dir.join("inboxes"), None, settings).unwrap();
        let whole_past = archive.clone().with_policy(Policy { pull_above: PULL_ABOVE, whole_past: true });
        Self {
            archive: Arc::new(archive),
            whole_past: Arc::new(whole_past),
            inboxes: Arc::new(inboxes),
            worlds: AtomicU64::new(1),
        }
    }
}

impl Stores {
    /// The operator's look at the inboxes finds nothing either, in all worlds together.
    fn look_sound(&self) {
        let feeds = Arc::new(Feeds::new(self.archive.clone(), self.inboxes.clone(), BACKFILL));
        let check = block_on(Rules::new(feeds).changes.compare(None, async || {})).unwrap();
        assert!(check.looked_at > 0 && check.wrong == 0, "{check:#?}");
    }
}

/// Something under way, and at which node for whom if it reads: one who reads does one thing at a time.
struct Actor {
    reads: Option<(usize, User)>,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

struct Simulation {
    archive: Arc<dyn Archive>,
    inboxes: Arc<dyn Inboxes>,
    gate: Gate,
    clock: Arc<AtomicI64>,
    nodes: Vec<Arc<Node>>,
    /// Makes another process with the settings of this node.
    process: Box<dyn Fn(usize) -> Arc<Node>>,
    /// A process that does all at once.
    at_once: Arc<Node>,
    oracle: Arc<Mutex<Oracle>>,
    /// The devices that each node serves, by the node's number.
    devices: Vec<BTreeMap<Inbox, Arc<Mutex<Device>>>>,
    actors: Vec<Actor>,
    /// The log each inbox was seen to have, to catch one that changes behind a served head.
    seen: BTreeMap<Inbox, Log>,
}

impl Simulation {
    fn new(stores: &Stores) -> Self {
        let gate = Gate::default();
        let archives = [&stores.archive, &stores.whole_past]
            .map(|store| -> Arc<dyn Archive> { Arc::new(Gated { gate: gate.clone(), store: store.clone() }) });
        let inboxes: Arc<dyn Inboxes> = Arc::new(Gated { gate: gate.clone(), store: stores.inboxes.clone() });
        let world = World::new(stores.worlds.fetch_add(1, Ordering::Relaxed), USERS);
        let numbers = block_on(stores.archive.intern(&world.names)).unwrap();
        let clock = Arc::new(AtomicI64::new(NOW));
        let now = clock.clone();
        let node = move |archive: &Arc<dyn Archive>, inboxes: &Arc<dyn Inboxes>, step_max: usize| {
            let now = now.clone();
            let clock: Arc<dyn Fn() -> Millis + Send + Sync> = Arc::new(move || now.load(Ordering::Relaxed));
            let feeds = || {
                Feeds::new(archive.clone(), inboxes.clone(), BACKFILL)
                    .with_retention(Duration::from_millis(UNREAD), clock.clone())
            };
            let rules = Rules::by_steps(Arc::new(feeds().with_named(rankings())), step_max);
            Arc::new(Node::new(Arc::new(rules), feeds(), world.clone(), numbers.clone()))
        };
        let at_once = node(&stores.archive, &stores.inboxes, USERS);
        // The last is more than anybody has followers: a round takes all buckets at once.
        let process = move |n: usize| node(&archives[n], &inboxes, [1, USERS + 1][n]);
        Self {
            archive: stores.archive.clone(),
            inboxes: stores.inboxes.clone(),
            nodes: (0..NODES).map(&process).collect(),
            process: Box::new(process),
            at_once,
            gate,
            clock,
            oracle: Arc::new(Mutex::new(Oracle::new(BACKFILL))),
            devices: (0..NODES).map(|_| whole_world().map(|inbox| (inbox, Arc::default())).collect()).collect(),
            actors: vec![],
            seen: BTreeMap::new(),
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for (tick, step) in steps.iter().enumerate() {
            self.clock.fetch_add(1, Ordering::Relaxed);
            match step {
                Step::Start(node, action) => self.start(*node, action),
                Step::Call(which) if !self.actors.is_empty() => {
                    let which = which % self.actors.len();
                    if poll_until(self.actors[which].future.as_mut(), || self.gate.reached()).is_ready() {
                        self.actors.swap_remove(which);
                    }
                }
                Step::Drop(which) if !self.actors.is_empty() => _ = self.actors.swap_remove(which % self.actors.len()),
                Step::Call(_) | Step::Drop(_) => {}
            }
            if tick % 8 == 0 {
                self.check_logs();
            }
        }
        self.actors.clear();
    }

    fn start(&mut self, at: usize, action: &Action) {
        // The time of a reaction decides whether it was seen: so these happen at the time that they are given.
        if let Action::Write(op @ (Op::React { .. } | Op::See(_))) = action {
            let now = self.clock.load(Ordering::Relaxed);
            return block_on(accept(&self.at_once, at == 1, &self.oracle, op, now));
        }
        let reads = match action {
            Action::Visit((user, _)) | Action::Sync((user, _)) | Action::Walk((user, _), _) => Some((at, *user)),
            _ => None,
        };
        let waits = reads.is_some() && self.actors.iter().any(|actor| actor.reads == reads);
        if self.actors.len() < ACTORS && !waits {
            let future = self.begin(at, action.clone());
            self.actors.push(Actor { reads, future });
        }
    }

    fn begin(&self, at: usize, action: Action) -> Pin<Box<dyn Future<Output = ()>>> {
        let node = match action {
            // These may help to build an inbox. Within one process only one task builds an inbox at a time, and an
            // actor that waited for another one here would wait for ever. So each of them is a worker of its own.
            Action::Work(_) | Action::Edge(..) | Action::Direct(_) => (self.process)(at),
            _ => self.nodes[at].clone(),
        };
        let now = self.clock.load(Ordering::Relaxed);
        let number = |user: User| node.numbers[user];
        match action {
            Action::Write(op) => {
                let oracle = self.oracle.clone();
                Box::pin(async move { accept(&node, at == 1, &oracle, &op, now).await })
            }
            Action::Work(which) => Box::pin(async move {
                let outstanding = node.rules.feeds.archive().outstanding(None, Millis::MAX, 100).await.unwrap();
                if !outstanding.is_empty() {
                    work_off(&node.rules, outstanding[which % outstanding.len()].event).await.unwrap();
                }
            }),
            Action::Push(author, bucket) => {
                let author = number(author);
                Box::pin(async move { _ = node.rules.fan_out.advance(author, Bucket(bucket)).await.unwrap() })
            }
            Action::Round(author) => {
                let author = number(author);
                Box::pin(async move { _ = node.rules.fan_out.advance_all(author).await.unwrap() })
            }
            Action::Edge(reader) => {
                let reader = number(reader);
                Box::pin(async move { _ = node.rules.fan_out.step_edges(reader).await.unwrap() })
            }
            Action::Direct(reader) => {
                let reader = number(reader);
                Box::pin(async move { _ = node.rules.fan_out.take_direct(reader).await.unwrap() })
            }
            Action::Visit(inbox) => Box::pin(async move { node.rules.feeds.rebuild(node.key(inbox)).await.unwrap() }),
            Action::Sync(inbox) => {
                let device = self.devices[at][&inbox].clone();
                Box::pin(async move { _ = device.lock().await.sync(&*node, inbox, 2, 3).await })
            }
            Action::Walk(inbox, limit) => Box::pin(async move { _ = walk(&*node, inbox, limit).await }),
            Action::Touch(inbox) => Box::pin(async move { node.rules.feeds.touch(&[node.key(inbox)]).await.unwrap() }),
            Action::Sleep(inbox) => {
                Box::pin(async move { node.rules.feeds.inboxes().discard(node.key(inbox)).await.unwrap() })
            }
            Action::Expire => {
                Box::pin(async move { _ = node.rules.feeds.inboxes().discard_expired(now, 100).await.unwrap() })
            }
            Action::Renew(limit) => {
                Box::pin(async move { _ = node.rules.feeds.archive().renew_rankings(now, limit).await.unwrap() })
            }
            Action::Hear => Box::pin(async move { node.hear().await.unwrap() }),
        }
    }

    /// Works off what is outstanding, while every reader comes by: a first visit may make work outstanding again.
    fn drain(&self) {
        let rules = &self.nodes[0].rules;
        block_on(work_off_all(rules)).unwrap();
        for inbox in whole_world() {
            block_on(rules.feeds.rebuild(self.nodes[0].key(inbox))).unwrap();
        }
        block_on(work_off_all(rules)).unwrap();
        self.nodes.iter().for_each(|node| block_on(node.hear()).unwrap());
    }

    /// I1, I2, I3, I10 and I11 on every log as it stands.
    fn check_logs(&mut self) {
        for inbox in whole_world() {
            let Some(log) = block_on(self.inboxes.log(self.nodes[0].key(inbox))).unwrap() else { continue };
            let (mut adds, mut shown, mut deleted) = (HashSet::new(), BTreeMap::new(), BTreeMap::new());
            for (numbered, expected) in log.entries.iter().zip(1..) {
                let entry = numbered.entry;
                assert_eq!(numbered.seq, expected, "I1: sequence ids of {inbox:?} are not dense: {log:#?}");
                match entry.op {
                    Change::Add => {
                        // A move brings another add, behind its delete: of a later record, and of another rank. A
                        // ranking may bring back what it let go of.
                        let late = deleted.get(&entry.key.item).is_some_and(|gone: &Entry| match entry.is_direct() {
                            true => gone.key == entry.key && inbox.1 != RANKED,
                            false => gone.outbox_seq > entry.outbox_seq,
                        });
                        assert!(!late, "I11: an add after its delete: {log:#?}");
                        let fresh = adds.insert((entry.author, entry.outbox_seq, entry.generation));
                        assert!(fresh || entry.is_direct(), "I3: two adds of {entry:?}: {log:#?}");
                        let twice = shown.insert(entry.key.item, entry);
                        assert!(twice.is_none(), "I3: {entry:?} is shown already: {log:#?}");
                    }
                    Change::Update => {}
                    Change::Delete => {
                        deleted.insert(entry.key.item, entry);
                        shown.remove(&entry.key.item);
                    }
                    Change::Forget => shown.retain(|_, of| of.is_direct() || of.author != entry.author),
                }
            }
            if let Some(before) = self.seen.get(&inbox)
                && before.head.epoch == log.head.epoch
            {
                assert!(log.entries.starts_with(&before.entries), "I2: the log of {inbox:?} changed below its head");
                let (old, new) = (before.taken, log.taken);
                assert!(old.pull <= new.pull && old.direct <= new.direct, "I10: {old:?} and then {new:?}");
            }
            self.seen.insert(inbox, log);
        }
    }

    /// I4, I5, I7 and I13: every device and every walk shows what the oracle says, and nothing else.
    fn check_feeds(&self) {
        let oracle = block_on(self.oracle.lock());
        for inbox in whole_world() {
            if inbox.1 == NOTES {
                self.check_lines(&oracle, inbox);
                continue;
            }
            let expected = oracle.feed(inbox);
            let mut items: Vec<_> = oracle.logged(inbox).iter().map(|shown| shown.item).collect();
            items.sort_unstable();
            for (node, devices) in self.nodes.iter().zip(&self.devices) {
                let mut device = block_on(devices[&inbox].lock());
                assert!(block_on(device.sync(&**node, inbox, usize::MAX, 3)));
                let log = || block_on(self.inboxes.log(node.key(inbox))).unwrap();
                assert_eq!(device.items(), items, "I4/I5: {inbox:?} with {:#?}", log());
                for limit in [1, 3, 100] {
                    let walked: Vec<Shown> = block_on(walk(&**node, inbox, limit));
                    assert_eq!(walked, expected, "I7: {inbox:?} by {limit} with {:#?}", log());
                }
                if inbox.1 == RANKED {
                    let told = block_on(node.told_now(inbox)).unwrap();
                    let shown: BTreeSet<_> = expected.iter().map(|shown| shown.item).collect();
                    assert_eq!(told, shown, "S11: what a device is told now of {inbox:?} with {:#?}", log());
                }
            }
        }
    }
}

impl Simulation {
    /// S6: the notifications of a user are the lines that the oracle says, and every device and every walk shows them.
    fn check_lines(&self, oracle: &Oracle, inbox: Inbox) {
        for (node, devices) in self.nodes.iter().zip(&self.devices) {
            let log = || block_on(self.inboxes.log(node.key(inbox))).unwrap();
            assert_eq!(block_on(node.lines(inbox.0)), oracle.lines(inbox.0), "S6: {inbox:?} with {:#?}", log());
            let walked = block_on(walk(&**node, inbox, 3));
            let mut items: Vec<_> = walked.iter().map(|shown| shown.item).collect();
            items.sort_unstable();
            let mut device = block_on(devices[&inbox].lock());
            assert!(block_on(device.sync(&**node, inbox, usize::MAX, 3)));
            assert_eq!(device.items(), items, "I4/I5: {inbox:?} with {:#?}", log());
        }
    }
}

/// Lets the Archive and the oracle decide; they must agree.
async fn accept(node: &Node, whole_past: bool, oracle: &Mutex<Oracle>, op: &Op, now: Millis) {
    let accepted = node.accept(op, None, now).await.unwrap();
    let mut oracle = oracle.lock().await;
    oracle.set_whole_past(whole_past);
    oracle.set_time(now);
    assert_eq!(accepted, oracle.accept(op), "{op:?}");
}

fn simulate(stores: &Stores, steps: &[Step]) {
    let mut simulation = Simulation::new(stores);
    simulation.run(steps);
    simulation.gate.open();
    simulation.drain();
    simulation.check_feeds();
    simulation.check_logs();
    assert!(block_on(simulation.archive.outstanding(None, Millis::MAX, 1)).unwrap().is_empty());
}

/// In the stores that all share, unless everyone is to follow an author: everyone in a store.
fn simulate_where_it_fits(shared: &Stores, steps: &[Step]) {
    let for_everyone = |step: &Step| matches!(step, Step::Start(_, Action::Write(Op::Classify(_, Class::Everyone))));
    if steps.iter().any(for_everyone) {
        let dir = tempfile::tempdir().unwrap();
        simulate(&Stores::open(dir.path()), steps);
    } else {
        simulate(shared, steps);
    }
}

#[test]
fn i4_after_drain_and_sync_every_device_shows_its_feed_whatever_the_schedule() {
    // The stores use its threads for long reads; the schedule is this test's own.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lanes = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let lane = |number: u64| {
        let _inside = runtime.enter();
        let dir = tempfile::tempdir().unwrap();
        let shared = Stores::open(dir.path());
        let run = |steps: &[Step]| simulate_where_it_fits(&shared, steps);
        if let Some(steps) = given::<Step>("FEEDGATE_SCHEDULE") {
            return run(&steps);
        }
        seeds(SEEDS).filter(|seed| seed % lanes == number).for_each(|seed| hold(seed, imagine(seed), run));
        shared.look_sound();
    };
    thread::scope(|scope| (0..lanes).for_each(|number| _ = scope.spawn(move || lane(number))));
}
