//! Random schedules with several workers: after everything is worked off, a device shows exactly what its reader
//! follows. The answer is computed a second time, naively, from the writes alone.
//!
//! `FEEDGATE_SEED=n cargo test -p feedgate-timeline --test worker i4` repeats one seed.

use std::collections::{BTreeMap, BTreeSet};

use crate::town::{BACKFILL, Town, sweeping};
use feedgate_common::change::Class;
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::{Op, Position, UserNo};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 12;
const STEPS: usize = 80;
const USERS: usize = 7;
const AUTHORS: usize = 3;

/// The writes as they were accepted, and the rule in its plainest words.
#[derive(Default)]
struct Truth {
    /// (what, item) of each record, in order.
    outboxes: [Vec<(Op, u64)>; AUTHORS],
    /// (reader, author) → how long the outbox was when the follow was set on.
    edges: BTreeMap<(usize, usize), usize>,
    /// (author, readers) of each living item that is addressed to some.
    direct: BTreeMap<u64, (usize, BTreeSet<usize>)>,
    items: u64,
}

impl Truth {
    fn living_items(&self) -> Vec<(usize, u64)> {
        let all = self.outboxes.iter().enumerate();
        let followed = all.flat_map(|(author, outbox)| living(outbox).into_iter().map(move |item| (author, item)));
        followed.chain(self.direct.iter().map(|(item, (author, _))| (*author, *item))).collect()
    }

    /// The item is changed or gone: its author's outbox says so, unless it was addressed to some.
    fn changed(&mut self, op: Op, author: usize, item: u64) {
        if !self.direct.contains_key(&item) {
            self.outboxes[author].push((op, item));
        } else if op == Op::Delete {
            self.direct.remove(&item);
        }
    }

    /// Of each author followed: the newest [`BACKFILL`] that lived when the follow was set on, and everything since,
    /// minus what was deleted. And what is addressed to the reader, followed or not.
    fn shown(&self, reader: usize) -> BTreeSet<u64> {
        let to_reader = self.direct.iter().filter(|(_, (_, readers))| readers.contains(&reader));
        let mut shown: BTreeSet<u64> = to_reader.map(|(item, _)| *item).collect();
        for author in 0..AUTHORS {
            let Some(&from) = self.edges.get(&(reader, author)) else { continue };
            let (before, since) = self.outboxes[author].split_at(from);
            let lived = living(before);
            let newest = &lived[lived.len().saturating_sub(BACKFILL)..];
            let still: BTreeSet<u64> = living(&self.outboxes[author]).into_iter().collect();
            let since = living(since);
            shown.extend(newest.iter().chain(&since).filter(|item| still.contains(item)));
        }
        shown
    }
}

/// The items that a stretch of an outbox leaves, in order.
fn living(outbox: &[(Op, u64)]) -> Vec<u64> {
    let deleted: BTreeSet<u64> = outbox.iter().filter(|(op, _)| *op == Op::Delete).map(|(_, item)| *item).collect();
    let adds = outbox.iter().filter(|(op, item)| *op == Op::Add && !deleted.contains(item));
    adds.map(|(_, item)| *item).collect()
}

/// A device that only ever sees what it is sent.
#[derive(Default)]
struct Device {
    position: Option<Position>,
    /// Whose item it is, and whether it is addressed to the reader.
    shown: BTreeMap<u64, (UserNo, bool)>,
}

impl Device {
    /// Catches up with at most `limit` changes at a time, once or to the end.
    async fn sync(&mut self, town: &Town, reader: usize, limit: usize, to_the_end: bool) {
        let key = town.key(reader);
        loop {
            let Some(position) = self.position else { return self.reset(town, reader).await };
            match town.changes.read(key, position, limit).await.unwrap() {
                Read::Entries { entries, .. } => {
                    let is_end = entries.len() < limit;
                    entries.iter().for_each(|numbered| self.apply(numbered));
                    if is_end || !to_the_end {
                        return;
                    }
                }
                Read::Gone { .. } => return self.reset(town, reader).await,
                Read::Missing => unreachable!("a missing inbox is rebuilt by the read"),
            }
        }
    }

    async fn reset(&mut self, town: &Town, reader: usize) {
        let log = town.log(reader).await;
        self.shown.clear();
        self.position = Some(Position { offset: 0, ..log.head });
        log.entries.iter().for_each(|numbered| self.apply(numbered));
    }

    fn apply(&mut self, numbered: &Numbered) {
        let position = self.position.as_mut().expect("it has one before it reads");
        assert_eq!(numbered.seq, position.offset + 1, "changes come dense and in order");
        position.offset = numbered.seq;
        let (entry, item) = (numbered.entry, numbered.entry.key.item.0);
        match entry.op {
            Op::Add => {
                let before = self.shown.insert(item, (entry.author, entry.is_direct()));
                assert_eq!(before, None, "item {item} is shown twice");
            }
            Op::Update => {}
            Op::Delete => drop(self.shown.remove(&item)),
            Op::Forget => self.shown.retain(|_, (author, direct)| *direct || *author != entry.author),
        }
    }
}

/// One random thing that a backend or a reader does.
async fn step(town: &Town, truth: &mut Truth, devices: &mut [Device], rng: &mut SmallRng) {
    let (author, reader) = (rng.random_range(0..AUTHORS), rng.random_range(0..USERS));
    let living = truth.living_items();
    let old = (!living.is_empty()).then(|| living[rng.random_range(0..living.len())]);
    match rng.random_range(0..100) {
        0..5 => {
            truth.items += 1;
            let readers: BTreeSet<usize> = (0..3).map(|_| rng.random_range(0..USERS)).collect();
            town.publish_to(author, truth.items, &Vec::from_iter(readers.clone())).await;
            truth.direct.insert(truth.items, (author, readers));
        }
        5..10 => town.classify(author, [Class::Push, Class::Pull, Class::Auto][rng.random_range(0..3)]).await,
        10..35 => {
            truth.items += 1;
            town.publish(author, truth.items).await;
            truth.outboxes[author].push((Op::Add, truth.items));
        }
        35..50 => {
            let Some((author, item)) = old else { return };
            town.delete(item).await;
            truth.changed(Op::Delete, author, item);
        }
        50..55 => {
            let Some((author, item)) = old else { return };
            town.edit(item).await;
            truth.changed(Op::Update, author, item);
        }
        // A follow of oneself is refused, so this step does nothing.
        55..80 if reader == author => {}
        55..72 => {
            town.follow(reader, author).await;
            let head = truth.outboxes[author].len();
            truth.edges.entry((reader, author)).or_insert(head);
        }
        72..80 => {
            town.unfollow(reader, author).await;
            truth.edges.remove(&(reader, author));
        }
        80..97 => devices[reader].sync(town, reader, rng.random_range(1..4), false).await,
        _ => town.stores.inboxes.discard(town.key(reader)).await.unwrap(),
    }
}

async fn a_schedule(seed: u64) {
    println!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), USERS).await;
    let mut truth = Truth::default();
    let mut devices: Vec<Device> = (0..USERS).map(|_| Device::default()).collect();
    // They sweep, since a rebuild may reopen what was finished while it read.
    let work = |_| town.worker_on(town.stores.jobs.clone(), town.stores.doorbell.clone(), sweeping());
    let workers: Vec<_> = (0..rng.random_range(1..=3)).map(work).collect();
    for _ in 0..STEPS {
        step(&town, &mut truth, &mut devices, &mut rng).await;
    }
    town.finished().await;
    for (reader, device) in devices.iter_mut().enumerate() {
        let wants = truth.shown(reader);
        device.sync(&town, reader, 2, true).await;
        let shows: BTreeSet<u64> = device.shown.keys().copied().collect();
        assert_eq!(shows, wants, "seed {seed}: the device of reader {reader}");
        assert_eq!(town.shown(reader).await, wants, "seed {seed}: the log of reader {reader}");
        let page = town.pages.page(town.key(reader), None, 100).await.unwrap();
        let page: BTreeSet<u64> = page.items.iter().map(|item| item.id.0).collect();
        assert_eq!(page, wants, "seed {seed}: the first page of reader {reader}");
    }
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_i13_after_drain_a_device_sees_what_is_followed_and_what_is_addressed_to_it_whatever_the_classes() {
    if let Ok(seed) = std::env::var("FEEDGATE_SEED") {
        return a_schedule(seed.parse().expect("FEEDGATE_SEED is a number")).await;
    }
    for seed in 0..SEEDS {
        a_schedule(seed).await;
    }
}
