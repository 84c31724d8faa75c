//! The rules of fan-out under random interleavings, over the real embedded stores.
//!
//! Each seed makes a small world: two authors, four readers, two buckets, steps of one or two
//! recipients. A scheduler starts push steps, follow steps, first visits, devices, dormancy and
//! backend writes, lets one of them make one store call at a time, and drops some half way, as a
//! crash would. Then everything is drained, and every device must show what the truth says.
//!
//! `FEEDGATE_SEED=n cargo test -p feedgate-tests --test schedules` repeats one seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use feedgate_common::archive::{Publish, Write, Written};
use feedgate_common::feed::{Feeds, Step};
use feedgate_common::inboxes::{Log, Read};
use feedgate_common::{
    Archive, Body, Bucket, DisplayKey, Entry, Epoch, InboxKey, Inboxes, ItemId, Op, Position, UserId, UserNo,
};
use feedgate_embedded::Embedded;
use feedgate_tests::gate::{Gate, Gated};
use feedgate_tests::park::{block_on, poll_until};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const BUCKETS: u16 = 2;
const BACKFILL: usize = 2;
const SEEDS: u64 = 150;
const TICKS: usize = 160;

type Actor = Pin<Box<dyn Future<Output = ()>>>;

/// What one device shows, kept only by what it was sent.
#[derive(Default)]
struct Device {
    position: Option<Position>,
    shown: BTreeMap<ItemId, UserNo>,
}

impl Device {
    fn apply(&mut self, entry: &Entry) {
        match entry.op {
            Op::Add => _ = self.shown.insert(entry.key.item, entry.author),
            Op::Update => {}
            Op::Delete => _ = self.shown.remove(&entry.key.item),
            Op::Forget => self.shown.retain(|_, author| *author != entry.author),
        }
    }
}

struct World {
    archive: Arc<dyn Archive>,
    inboxes: Arc<dyn Inboxes>,
    /// The same stores behind the gate.
    gated: (Arc<dyn Archive>, Arc<dyn Inboxes>),
    gate: Gate,
    step_max: usize,
    /// The rules without the gate, for draining and checking.
    plain: Feeds,
    names: Vec<UserId>,
    nos: Vec<UserNo>,
    devices: Vec<Arc<Mutex<Device>>>,
    items: Arc<Mutex<Vec<ItemId>>>,
    /// The log each reader was seen to have, to catch one that changes behind a served head.
    seen: BTreeMap<UserNo, Log>,
}

const AUTHORS: usize = 2;
const USERS: usize = 6;

impl World {
    fn new(stores: &Embedded, seed: u64, rng: &mut SmallRng) -> Self {
        let gate = Gate::default();
        let archive = Arc::new(Gated { gate: gate.clone(), store: stores.archive.clone() });
        let inboxes = Arc::new(Gated { gate: gate.clone(), store: stores.inboxes.clone() });
        let names: Vec<UserId> = (0..USERS).map(|i| format!("s{seed}-{i}").parse().unwrap()).collect();
        let nos = block_on(stores.archive.intern(&names)).unwrap();
        Self {
            gated: (archive, inboxes),
            // The last is more than anybody has followers: a round takes all buckets at once.
            step_max: [1, 2, USERS + 1][rng.random_range(0..3)],
            plain: Feeds::new(stores.archive.clone(), stores.inboxes.clone(), BACKFILL),
            archive: stores.archive.clone(),
            inboxes: stores.inboxes.clone(),
            gate,
            names,
            nos,
            devices: (0..USERS).map(|_| Arc::default()).collect(),
            items: Arc::default(),
            seen: BTreeMap::new(),
        }
    }

    /// The rules as one process has them: nobody shares memory with anybody.
    fn process(&self) -> Feeds {
        Feeds::new(self.gated.0.clone(), self.gated.1.clone(), BACKFILL).with_step_max(self.step_max)
    }

    /// A random thing that some process may start at any time.
    fn start(&self, rng: &mut SmallRng) -> Actor {
        let author = self.nos[rng.random_range(0..AUTHORS)];
        let reader = rng.random_range(0..USERS);
        let (key, feeds) = (InboxKey::main(self.nos[reader]), self.process());
        match rng.random_range(0..100) {
            0..20 => {
                let bucket = Bucket(rng.random_range(0..BUCKETS));
                Box::pin(async move { _ = feeds.advance(author, bucket).await.unwrap() })
            }
            20..30 => Box::pin(async move { _ = feeds.advance_all(author).await.unwrap() }),
            30..50 => Box::pin(async move { _ = feeds.step_edge(key.reader, author).await.unwrap() }),
            50..60 => Box::pin(async move { feeds.rebuild(key).await.unwrap() }),
            60..75 => {
                let device = self.devices[reader].clone();
                Box::pin(async move { sync(&feeds, key, &device, 2).await })
            }
            75..78 => Box::pin(async move { feeds.inboxes().discard(key).await.unwrap() }),
            _ => self.start_write(rng),
        }
    }

    fn start_write(&self, rng: &mut SmallRng) -> Actor {
        let author = self.names[rng.random_range(0..AUTHORS)].clone();
        let reader = self.names[rng.random_range(0..USERS)].clone();
        let items = self.items.lock().unwrap();
        let item = (!items.is_empty()).then(|| items[rng.random_range(0..items.len())]);
        let body = Body::parse("{}".into()).unwrap();
        let write = match (rng.random_range(0..10), item) {
            (0..3, _) => Write::Follow { reader, author },
            (3..5, _) => Write::Unfollow { reader, author },
            (5, Some(item)) => Write::Delete { item, if_version: None },
            (6, Some(item)) => Write::Edit { item, body, if_version: None },
            _ => Write::Publish(Publish {
                author,
                body,
                kind: None,
                id: None,
                foreign_id: None,
                published_at: None,
                // Few ranks, in no order, so that display order and outbox order differ.
                rank: Some(rng.random_range(0..5)),
                idempotency_key: None,
            }),
        };
        let (archive, items) = (self.gated.0.clone(), self.items.clone());
        Box::pin(async move {
            if let Ok(Written::Published { id, .. }) = &archive.write(vec![write], 1).await.unwrap()[0] {
                items.lock().unwrap().push(*id);
            }
        })
    }

    /// Lets the actors run, one store call at a time, in an order the seed decides.
    fn run(&mut self, rng: &mut SmallRng) {
        let mut actors: Vec<Actor> = Vec::new();
        for tick in 0..TICKS {
            if actors.len() < 5 && rng.random_bool(0.5) {
                actors.push(self.start(rng));
            }
            if actors.is_empty() {
                continue;
            }
            let chosen = rng.random_range(0..actors.len());
            if rng.random_bool(0.03) || poll_until(actors[chosen].as_mut(), || self.gate.reached()).is_ready() {
                drop(actors.swap_remove(chosen));
            }
            if tick % 8 == 0 {
                self.check_logs();
            }
        }
    }

    /// Works everything off, as the worker and its sweep would.
    fn drain(&self) {
        for _ in 0..2 {
            for author in &self.nos[..AUTHORS] {
                for reader in &self.nos {
                    block_on(self.plain.step_edge(*reader, *author)).unwrap();
                }
                for bucket in (0..BUCKETS).map(Bucket) {
                    while let Step::Moved(_) = block_on(self.plain.advance(*author, bucket)).unwrap() {}
                }
            }
            // A first visit may make work outstanding again, hence the second round.
            for reader in &self.nos {
                block_on(self.plain.rebuild(InboxKey::main(*reader))).unwrap();
            }
        }
    }

    /// I1, I2, I3 and I11 on every log as it stands.
    fn check_logs(&mut self) {
        for reader in &self.nos {
            let Some(log) = block_on(self.inboxes.log(InboxKey::main(*reader))).unwrap() else { continue };
            let mut adds = HashSet::new();
            for (numbered, expected) in log.entries.iter().zip(1..) {
                let entry = numbered.entry;
                assert_eq!(numbered.seq, expected, "I1: sequence ids of {reader:?} are not dense");
                let line = (entry.author, entry.outbox_seq, entry.generation);
                if entry.op == Op::Add {
                    assert!(adds.insert(line), "I3: {reader:?} has two adds of {entry:?}");
                }
            }
            if let Some(before) = self.seen.get(reader)
                && before.head.epoch == log.head.epoch
            {
                assert!(log.entries.starts_with(&before.entries), "I2: the log of {reader:?} changed below its head");
            }
            self.seen.insert(*reader, log);
        }
    }

    /// I4 and I5: after drain and sync a device shows what the truth says and nothing else.
    fn check_devices(&self) {
        for (reader, device) in self.nos.iter().zip(&self.devices) {
            block_on(sync(&self.plain, InboxKey::main(*reader), device, usize::MAX));
            let expected: BTreeSet<ItemId> = block_on(self.archive.feed_below(*reader, None, BACKFILL, 10_000))
                .unwrap()
                .iter()
                .map(|add| add.key.item)
                .collect();
            let shown: BTreeSet<ItemId> = device.lock().unwrap().shown.keys().copied().collect();
            let log = block_on(self.inboxes.log(InboxKey::main(*reader))).unwrap();
            assert_eq!(shown, expected, "I4/I5: reader {reader:?} with {log:#?}");
        }
    }
}

/// Brings a device forward by at most `batches` reads, as a session does.
async fn sync(feeds: &Feeds, key: InboxKey, device: &Mutex<Device>, batches: usize) {
    for _ in 0..batches {
        let position = device.lock().unwrap().position.unwrap_or(Position { epoch: Epoch(0), offset: 0 });
        match feeds.read(key, position, 3).await.unwrap() {
            Read::Entries { entries, head } => {
                let mut device = device.lock().unwrap();
                for (numbered, expected) in entries.iter().zip(position.offset + 1..) {
                    assert_eq!(numbered.seq, expected, "I9: a read after {position:?} has a hole");
                    device.apply(&numbered.entry);
                }
                let offset = position.offset + entries.len() as u64;
                device.position = Some(Position { offset, ..position });
                if offset == head {
                    return;
                }
            }
            Read::Gone { .. } => reload(feeds, key, device).await,
            Read::Missing => unreachable!("a missing inbox is rebuilt before it is read"),
        }
    }
}

/// Reloads every page; the position was read before the first.
async fn reload(feeds: &Feeds, key: InboxKey, device: &Mutex<Device>) {
    let mut fresh = Device::default();
    let mut before: Option<DisplayKey> = None;
    loop {
        let page = feeds.page(key, before, 3).await.unwrap();
        fresh.position.get_or_insert(page.position);
        fresh.shown.extend(page.items.iter().map(|item| (item.id, item.author_no)));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    *device.lock().unwrap() = fresh;
}

fn simulate(stores: &Embedded, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = World::new(stores, seed, &mut rng);
    world.run(&mut rng);
    world.drain();
    world.check_logs();
    world.check_devices();
}

#[test]
fn i4_after_drain_and_sync_every_device_shows_its_feed_whatever_the_schedule() {
    let dir = tempfile::tempdir().unwrap();
    // The stores use its threads for long reads; the schedule is this test's own.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let stores = Embedded::open(dir.path(), BUCKETS).unwrap();
    let seeds = match std::env::var("FEEDGATE_SEED") {
        Ok(seed) => vec![seed.parse().expect("FEEDGATE_SEED is a number")],
        Err(_) => (0..SEEDS).collect(),
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulate(&stores, seed)));
        if let Err(panic) = run {
            eprintln!("FEEDGATE_SEED={seed} fails");
            std::panic::resume_unwind(panic);
        }
    }
}
