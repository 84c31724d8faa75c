//! Random histories through the backends of the cluster, PostgreSQL, Redis and NATS as real servers, against the
//! oracle.
//!
//! ```text
//!   world 1 ─┐                        ┌ process a: worker, node ┐
//!   world …  ├ writes, reads, sleeps ─┤                         ├─ one PostgreSQL, one Redis, one NATS
//!   world n ─┘        at once         └ process b: worker, node ┘        └ killed, emptied, rolled back meanwhile
//! ```
//!
//! A round is a few worlds at once, each with users of its own, and one thing that may happen to Redis. Where a follow
//! shows little from before it, a world's writes come one by one; where it shows everything, several at once that
//! could be accepted in any order. Then all is worked off, and every device and every walk over pages must show what
//! the oracle says.
//!
//! `FEEDGATE_SEED=n` repeats one round, `FEEDGATE_SEEDS=n` is how many there are.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

#[path = "feeds/process.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};

use feedgate_common::Millis;
use feedgate_common::change::Class;
use feedgate_engines::Redis;
use feedgate_tests::oracle::{
    AUTHORS, Device, Imagined, Inbox, NOW, Op, Oracle, USERS, World, renew_all, seeds, some_inbox, walk, whole_world,
};
use futures_util::future::join_all;
use process::{Engines, Patient, Process, patient};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const ROUNDS: u64 = 12;
/// How many worlds live at once in a round.
const WORLDS: u64 = 8;
const STEPS: usize = 60;

/// What a follow brings and shows from before it in a round.
#[derive(Clone, Copy)]
struct Backfill {
    brings: usize,
    whole_past: bool,
}

/// Little, as much as there is, and all, of which a step brings little.
const BACKFILLS: [Backfill; 3] = [
    Backfill { brings: 2, whole_past: false },
    Backfill { brings: 1000, whole_past: false },
    Backfill { brings: 2, whole_past: true },
];

/// That of a round: each meets each of the [`LOSSES`].
fn backfill(seed: u64) -> Backfill {
    BACKFILLS[(seed + seed / LOSSES.len() as u64) as usize % BACKFILLS.len()]
}

/// What may happen to Redis in the middle of a round.
const LOSSES: &[fn(&mut Redis, &std::path::Path)] = &[
    |_, _| {},
    |redis, _| {
        redis.cli(&["flushall"]);
    },
    |_, _| {},
    |redis, _| {
        redis.kill();
        redis.restart();
    },
    |_, _| {},
    |redis, copy| redis.roll_back(copy),
];

struct Story {
    rng: SmallRng,
    history: Imagined,
    oracle: Oracle,
    nodes: Vec<Patient>,
    /// The devices that each node serves, by the node's number.
    devices: Vec<BTreeMap<Inbox, Device>>,
    together: bool,
    for_everyone: bool,
}

impl Story {
    async fn new(seed: u64, number: u64, processes: &[Process], for_everyone: bool) -> Self {
        let world = World::new(number, USERS);
        let numbers = processes[0].archive.intern(&world.names).await.unwrap();
        let Backfill { brings, whole_past } = backfill(seed);
        let mut oracle = Oracle::new(brings);
        oracle.set_whole_past(whole_past);
        Self {
            rng: SmallRng::seed_from_u64(seed * WORLDS + number % WORLDS),
            history: Imagined::new(USERS, AUTHORS),
            oracle,
            nodes: processes.iter().map(|process| process.node(&world, &numbers)).collect(),
            devices: processes.iter().map(|_| BTreeMap::new()).collect(),
            together: whole_past || brings > STEPS,
            for_everyone,
        }
    }

    async fn live(&mut self) {
        for _ in 0..STEPS {
            let at = self.rng.random_range(0..self.nodes.len());
            let user = self.rng.random_range(0..USERS);
            let inbox = some_inbox(&mut self.rng, user);
            match self.rng.random_range(0..100) {
                0..50 => self.write().await,
                50..85 => _ = self.devices[at].entry(inbox).or_default().sync(&self.nodes[at], inbox, 2, 3).await,
                85..92 => _ = walk(&self.nodes[at], inbox, 2).await,
                92..97 => self.nodes[at].sleep(inbox).await,
                _ => self.nodes[at].hear().await,
            }
        }
    }

    /// One operation, or several at once whose order makes no difference.
    async fn write(&mut self) {
        let most = if self.together { self.rng.random_range(1..5) } else { 1 };
        let (mut ops, mut touched) = (vec![], BTreeSet::new());
        for _ in 0..most {
            let op = match self.history.op(&mut self.rng) {
                // All happens at one time here, and times decide whether a notification was seen.
                Op::React { .. } | Op::See(_) => continue,
                // Everyone is everyone in the store, the readers of all other worlds too.
                Op::Classify(author, Class::Everyone) if !self.for_everyone => Op::Classify(author, Class::Pull),
                op => op,
            };
            let touches = op.touches();
            if ops.is_empty() || touches.as_ref().is_some_and(|touches| touches.iter().all(|on| !touched.contains(on)))
            {
                let alone = touches.is_none();
                touched.extend(touches.unwrap_or_default());
                ops.push(op);
                if alone {
                    break;
                }
            }
        }
        let writes = ops.iter().map(|op| self.nodes[self.rng.random_range(0..self.nodes.len())].write(op));
        let accepted: Vec<_> = join_all(writes.collect::<Vec<_>>()).await;
        for (op, accepted) in ops.iter().zip(accepted) {
            assert_eq!(accepted, self.oracle.accept(op), "{op:?}");
        }
    }

    async fn check(&mut self, seed: u64) {
        for inbox in whole_world() {
            let expected = self.oracle.feed(inbox);
            let mut items: Vec<_> = self.oracle.logged(inbox).iter().map(|shown| shown.item).collect();
            items.sort_unstable();
            for (node, devices) in self.nodes.iter().zip(&mut self.devices) {
                let of = (&node.world().names[inbox.0], inbox.1);
                assert_eq!(walk(node, inbox, 3).await, expected, "FEEDGATE_SEED={seed}: I7/I13: the pages of {of:?}");
                let device = devices.entry(inbox).or_default();
                assert!(device.sync(node, inbox, usize::MAX, 3).await);
                assert_eq!(device.items(), items, "FEEDGATE_SEED={seed}: I4/I5: the device of {of:?}");
            }
        }
    }
}

async fn round(engines: &mut Engines, seed: u64, first_world: u64, last: bool) {
    let processes = engines.processes(backfill(seed)).await;
    let mut stories = vec![];
    // Whom everyone follows has no world beside it and none after it.
    for number in first_world..first_world + if last { 1 } else { WORLDS } {
        stories.push(Story::new(seed, number, &processes, last).await);
    }
    let copy = tempfile::tempdir().unwrap();
    engines.redis.copy_files(copy.path());
    let lost = LOSSES[seed as usize % LOSSES.len()];
    let redis = &mut engines.redis;
    let middle = stories.len() / 2;
    let (half, other) = stories.split_at_mut(middle);
    // Half of the stories live before the loss, the others while it happens.
    join_all(half.iter_mut().map(Story::live)).await;
    std::thread::scope(|scope| {
        let losing = scope.spawn(|| lost(redis, copy.path()));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(join_all(other.iter_mut().map(Story::live)))
        });
        losing.join().unwrap();
    });
    settle(engines, &processes, &stories).await;
    for story in &stories {
        for inbox in whole_world() {
            walk(&story.nodes[0], inbox, 100).await;
        }
    }
    // A reader who comes back may make work outstanding again.
    settle(engines, &processes, &stories).await;
    for story in &mut stories {
        story.check(seed).await;
    }
    for process in processes {
        process.stop().await;
    }
}

/// Until nothing is outstanding and every node has heard of everything.
async fn settle(engines: &Engines, processes: &[Process], stories: &[Story]) {
    let archive = &processes[0].archive;
    patient(|| renew_all(&**archive, NOW)).await;
    while !engines.rankings_are_renewed() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    while !patient(|| archive.outstanding(None, Millis::MAX, 1)).await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for story in stories {
        join_all(story.nodes.iter().map(Patient::hear)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i13_through_the_cluster_every_device_ends_with_its_feed_whatever_redis_loses() {
    let mut engines = tokio::task::spawn_blocking(Engines::start).await.unwrap();
    let seeds = seeds(ROUNDS);
    let end = seeds.end;
    for seed in seeds {
        round(&mut engines, seed, 1 + seed * WORLDS, seed + 1 == end).await;
    }
}
