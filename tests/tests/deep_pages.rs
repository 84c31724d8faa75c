//! Pages far below the floor of a log, over the embedded stores and a worker, while the feed changes: nothing comes
//! twice, nothing that stood is missing (I7), and a short page is the end (I8).
//!
//! `FEEDGATE_SEED=n cargo test -p feedgate-tests --test deep_pages` repeats one seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::collections::{BTreeMap, BTreeSet};

use feedgate_common::archive::Write;
use feedgate_common::change::Class;
use feedgate_common::inboxes::KEEP;
use feedgate_common::{DisplayKey, InboxKey, ItemId, UserId};
use feedgate_tests::town::{Town, item};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 3;
/// The first half push; the last of them comes and goes.
const AUTHORS: usize = 4;
/// How many items each author publishes: all together more than a log keeps.
const ITEMS: usize = 500;
const DAY: i64 = 24 * 3600 * 1000;
/// A time long ago; the feed covers four years before it, so that every stage of a deep page finds something.
const NEWEST: i64 = 1_700_000_000_000;
const BACKFILL: usize = 2 * ITEMS;

/// A reader, the authors, and what must stand on the pages.
struct World {
    town: Town,
    rng: SmallRng,
    reader: UserId,
    authors: Vec<UserId>,
    key: InboxKey,
    /// What was published and not deleted, by author.
    living: BTreeMap<DisplayKey, usize>,
    followed: bool,
    last_id: u64,
}

impl World {
    async fn new(town: Town, seed: u64) -> Self {
        let reader: UserId = "reader".parse().unwrap();
        let authors: Vec<UserId> = (0..AUTHORS).map(|n| format!("author-{n}").parse().unwrap()).collect();
        let key = town.key(&reader).await.unwrap();
        let rng = SmallRng::seed_from_u64(seed);
        let living = BTreeMap::new();
        let mut world = Self { town, rng, reader, authors, key, living, followed: true, last_id: 0 };
        let mut writes: Vec<Write> = (AUTHORS / 2..AUTHORS)
            .map(|n| Write::Classify { author: world.authors[n].clone(), class: Class::Pull })
            .collect();
        writes.extend((0..AUTHORS).map(|n| world.follow(n)));
        writes.extend((0..AUTHORS * ITEMS).map(|n| world.post(n % AUTHORS)));
        world.town.write(writes).await.unwrap();
        world.town.settle().await.unwrap();
        world
    }

    fn follow(&self, author: usize) -> Write {
        Write::Follow { reader: self.reader.clone(), author: self.authors[author].clone() }
    }

    /// An item of any time in four years, often at the same instant as others.
    fn post(&mut self, author: usize) -> Write {
        let rank = NEWEST - self.rng.random_range(0..4 * 365) * DAY;
        self.last_id += 1;
        self.living.insert(DisplayKey { rank, item: ItemId(self.last_id) }, author);
        item(&self.authors[author], Some(self.last_id), rank, "…")
    }

    /// Something that a page may or may not show yet.
    fn change(&mut self) -> Write {
        match self.rng.random_range(0..10) {
            0..6 => {
                let author = self.rng.random_range(0..AUTHORS);
                self.post(author)
            }
            6..9 => {
                let nth = self.rng.random_range(0..self.living.len());
                let key = *self.living.keys().nth(nth).unwrap();
                self.living.remove(&key);
                Write::Delete { item: key.item, if_version: None }
            }
            _ => {
                self.followed = !self.followed;
                let (reader, author) = (self.reader.clone(), self.authors[AUTHORS - 1].clone());
                if self.followed { self.follow(AUTHORS - 1) } else { Write::Unfollow { reader, author } }
            }
        }
    }

    /// What the feed holds when everything is delivered.
    fn feed(&self) -> BTreeSet<DisplayKey> {
        let shown = |author: usize| author < AUTHORS - 1 || self.followed;
        self.living.iter().filter(|&(_, author)| shown(*author)).map(|(key, _)| *key).collect()
    }

    /// Every page from the top to the end, with so many changes before each, now and then settled.
    async fn scroll(&mut self, changes: usize) -> Vec<DisplayKey> {
        let (mut seen, mut before): (Vec<DisplayKey>, _) = (vec![], None);
        loop {
            let writes: Vec<Write> = (0..changes).map(|_| self.change()).collect();
            self.town.write(writes).await.unwrap();
            if changes > 0 && self.rng.random_bool(0.2) {
                self.town.settle().await.unwrap();
            }
            let limit = self.rng.random_range(1..100);
            let page = self.town.pages.page(self.key, before, limit).await.unwrap();
            assert!(page.items.len() == limit || page.next.is_none(), "I8: a short page that is not the end");
            seen.extend(page.items.iter().map(|item| item.key()));
            assert!(seen.is_sorted_by(|a, b| a > b), "I7: the pages descend strictly");
            before = page.next;
            if before.is_none() {
                return seen;
            }
        }
    }
}

async fn scrolled_through(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(Town::open(dir.path(), 2, BACKFILL).unwrap(), seed).await;
    let log = world.town.changes.log(world.key).await.unwrap();
    assert!(log.floor.is_some() && log.entries.len() < 2 * KEEP, "most of the feed lies below the floor");
    assert_eq!(world.scroll(0).await, world.feed().into_iter().rev().collect::<Vec<_>>(), "nothing happens meanwhile");
    for _ in 0..3 {
        let steady = |world: &World| -> BTreeSet<DisplayKey> {
            world.living.iter().filter(|&(_, author)| *author < AUTHORS - 1).map(|(key, _)| *key).collect()
        };
        let stood = steady(&world);
        let seen: BTreeSet<DisplayKey> = world.scroll(10).await.into_iter().collect();
        for key in stood.intersection(&steady(&world)) {
            assert!(seen.contains(key), "I7: {key:?} stood all the time and is on no page");
        }
        world.town.settle().await.unwrap();
        assert_eq!(
            world.scroll(0).await,
            world.feed().into_iter().rev().collect::<Vec<_>>(),
            "everything is delivered"
        );
    }
    world.town.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_i8_deep_pages_show_the_feed_exactly_while_it_changes() {
    let seeds = match std::env::var("FEEDGATE_SEED") {
        Ok(seed) => vec![seed.parse().expect("FEEDGATE_SEED is a number")],
        Err(_) => (0..SEEDS).collect(),
    };
    for seed in seeds {
        eprintln!("FEEDGATE_SEED={seed}");
        scrolled_through(seed).await;
    }
}
