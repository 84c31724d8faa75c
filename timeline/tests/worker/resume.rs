//! A worker that dies anywhere, and its stores with it: what it left is resumed, and the logs end with the same
//! changes as if nothing had happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::town::{Town, settings};
use feedgate_common::{Epoch, Op};
use feedgate_embedded::EmbeddedJobs;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;

const SEEDS: u64 = 4;
const USERS: usize = 9;
const AUTHORS: usize = 2;
const WRITES: u64 = 40;

/// What a reader's log says of each author, in order.
type Told = BTreeMap<u32, Vec<(Op, u64)>>;

/// Runs `life` with the stores open; then everything of it dies at once, half done or not: tasks are dropped where
/// they stand, and nothing is drained.
fn live<T>(dir: &Path, life: impl AsyncFnOnce(&Town) -> T) -> T {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let town = Town::open(dir, USERS).await;
        life(&town).await
    })
}

/// Write `n` of the schedule, the same for the same seed.
async fn write(town: &Town, seed: u64, n: u64) {
    let mut rng = SmallRng::seed_from_u64(seed * 1000 + n);
    let author = rng.random_range(0..AUTHORS);
    let earlier = rng.random_range(0..n.max(1));
    match rng.random_range(0..10) {
        // Items that were deleted or never published are refused, in every run alike.
        0..2 if n > 0 => drop(town.try_delete(1 + earlier).await),
        2..4 if n > 0 => drop(town.try_edit(1 + earlier).await),
        _ => town.publish(author, 1 + n).await,
    }
}

/// The whole schedule, with a crash after each of `crashes` writes.
fn run(seed: u64, crashes: &[u64]) -> Vec<Told> {
    let dir = tempfile::tempdir().unwrap();
    let epochs = live(dir.path(), async |town| {
        for reader in AUTHORS..USERS {
            town.visit(reader).await;
            for author in 0..AUTHORS {
                town.follow(reader, author).await;
            }
        }
        town.deliver().await;
        epochs(town).await
    });
    let mut begin = 0;
    for &crash in crashes {
        live(dir.path(), async |town| {
            let _dies = [town.worker(), town.worker()];
            for n in begin..crash {
                write(town, seed, n).await;
            }
        });
        begin = crash;
    }
    live(dir.path(), async |town| {
        let worker = town.worker();
        for n in begin..WRITES {
            write(town, seed, n).await;
        }
        town.drained().await;
        worker.stop().await;
        assert_eq!(self::epochs(town).await, epochs, "a crash loses no inbox");
        let mut told = vec![];
        for reader in AUTHORS..USERS {
            told.push(what_was_told(town, reader).await);
        }
        told
    })
}

async fn epochs(town: &Town) -> Vec<Epoch> {
    let mut epochs = vec![];
    for reader in AUTHORS..USERS {
        epochs.push(town.log(reader).await.head.epoch);
    }
    epochs
}

async fn what_was_told(town: &Town, reader: usize) -> Told {
    let log = town.log(reader).await;
    let mut told = Told::new();
    for (numbered, dense) in log.entries.iter().zip(1..) {
        assert_eq!(numbered.seq, dense, "sequence ids are dense from 1");
        let entry = numbered.entry;
        told.entry(entry.author.0).or_default().push((entry.op, entry.key.item.0));
    }
    told
}

#[test]
fn i14_resume_at_any_crash_point_gives_the_same_changes() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let undisturbed = run(seed, &[]);
        assert!(undisturbed.iter().all(|told| told.len() == AUTHORS));
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut crashes: Vec<u64> = (0..4).map(|_| rng.random_range(1..WRITES)).collect();
        crashes.sort_unstable();
        assert_eq!(run(seed, &crashes), undisturbed, "seed {seed}, crashes after writes {crashes:?}");
    }
}

/// The queue is lost with the process. These workers sweep at the start and not again within an hour.
#[test]
fn i6_what_is_outstanding_is_worked_off_from_the_start_on_also_if_it_is_more_than_the_queue_holds() {
    let dir = tempfile::tempdir().unwrap();
    let items = 1..=USERS as u64;
    live(dir.path(), async |town| {
        for reader in 0..USERS {
            town.visit(reader).await;
            for author in (0..USERS).filter(|author| *author != reader) {
                town.follow(reader, author).await;
            }
        }
        for item in items.clone() {
            town.publish(item as usize - 1, item).await;
        }
    });
    live(dir.path(), async |town| {
        let (jobs, doorbell) = (Arc::new(EmbeddedJobs::with_room(2)), town.stores.doorbell.clone());
        let worker = town.worker_on(jobs, doorbell, settings());
        town.finished().await;
        worker.stop().await;
        for reader in 0..USERS {
            let of_others = items.clone().filter(|item| *item as usize - 1 != reader);
            assert_eq!(town.shown(reader).await, of_others.collect(), "reader {reader}");
        }
    });
}

/// Push has to start over from the first record, and nobody does it yet: pages do not wait for that.
#[test]
fn i8_a_page_is_whole_as_soon_as_the_inboxes_are_lost_and_nothing_comes_twice() {
    let dir = tempfile::tempdir().unwrap();
    let items = 1..=WRITES;
    live(dir.path(), async |town| {
        for reader in AUTHORS..USERS {
            town.visit(reader).await;
            town.follow(reader, 0).await;
        }
        town.deliver().await;
        for item in items.clone() {
            town.publish(0, item).await;
        }
        town.deliver().await;
    });
    std::fs::remove_dir_all(dir.path().join("inboxes")).unwrap();
    live(dir.path(), async |town| {
        for reader in AUTHORS..USERS {
            let page = town.pages.page(town.key(reader), None, 100).await.unwrap();
            assert_eq!(page.items.len() as u64, WRITES, "reader {reader}");
        }
        town.deliver().await;
        town.publish(0, WRITES + 1).await;
        town.deliver().await;
        for reader in AUTHORS..USERS {
            let told: Vec<u64> = town.entries(reader).await.iter().map(|entry| entry.key.item.0).collect();
            assert_eq!(told, (1..=WRITES + 1).collect::<Vec<_>>(), "reader {reader}");
        }
    });
}
