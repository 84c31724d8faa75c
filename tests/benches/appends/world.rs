//! Readers, authors, who follows whom, and the posts.

use std::sync::Arc;

use anyhow::ensure;
use feedgate_common::archive::Recipient;
use feedgate_common::change::Route;
use feedgate_common::inboxes::{Advance, Advanced, Build, STEP_MAX};
use feedgate_common::{
    Bucket, DisplayKey, Epoch, FeedId, InboxKey, Inboxes, ItemId, Millis, Op, Progress, Record, UserNo, Watermarks,
};
use feedgate_embedded::EmbeddedInboxes;
use futures_util::stream::{FuturesUnordered, StreamExt};

/// How many steps are in flight at a time.
const IN_FLIGHT: usize = 64;

/// Readers are 0.., authors begin here.
const AUTHORS: u32 = 1_000_000;

/// The edge counter when the inboxes were built and when the steps are made.
pub(crate) const COUNTER: u64 = u32::MAX as u64;

/// Every author with a thousand followers of one bucket.
#[derive(Debug)]
pub(crate) struct World {
    readers: u32,
    buckets: u16,
    /// Reader and generation of each follower, ascending; what an archive would hold.
    followers: Vec<Vec<(u32, u32)>>,
}

impl World {
    pub(crate) fn new(readers: u32, authors: u32, buckets: u16) -> Self {
        let places = readers / u32::from(buckets);
        let edges = u64::from(authors) * STEP_MAX as u64;
        let follow = |author: u32| {
            let bucket = author % u32::from(buckets);
            let mut chosen = rand::seq::index::sample(&mut rand::rng(), places as usize, STEP_MAX).into_vec();
            chosen.sort_unstable();
            let edge = |place: usize| {
                let generation = 1 + rand::random_range(0..edges) as u32;
                (place as u32 * u32::from(buckets) + bucket, generation)
            };
            chosen.into_iter().map(edge).collect()
        };
        Self { readers, buckets, followers: (0..authors).map(follow).collect() }
    }

    pub(crate) fn authors(&self) -> u32 {
        self.followers.len() as u32
    }

    /// The step that brings the author's record `seq`, the `n`th post of all.
    fn step(&self, author: u32, seq: u64, n: u64) -> Advance {
        let edge = |&(reader, generation): &(u32, u32)| Recipient {
            reader: UserNo(reader),
            generation: generation.into(),
            from: 0,
            counter: COUNTER,
            listens: false,
        };
        Advance {
            author: UserNo(AUTHORS + author),
            bucket: Bucket((author % u32::from(self.buckets)) as u16),
            feed: FeedId::MAIN,
            expected: Progress::at(seq - 1),
            next: Progress::at(seq),
            records: vec![record(seq, n)],
            recipients: self.followers[author as usize].iter().map(edge).collect(),
            kept: false,
        }
    }
}

/// The `n`th post of all: a post every 20 s or so, with an id as the archive gives it.
pub(crate) fn record(seq: u64, n: u64) -> Record {
    let ms = 1_764_000_000_000 + n * 20_011;
    let key = DisplayKey { rank: ms as i64, item: ItemId(ms << 22 | (n % 4)) };
    Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key }
}

/// An empty inbox for every reader.
pub(crate) async fn build_all(store: &Arc<EmbeddedInboxes>, readers: u32) -> anyhow::Result<()> {
    let build = |reader: u32| {
        let store = store.clone();
        async move {
            let (key, epoch) = (InboxKey::main(UserNo(reader)), Epoch(reader.into()));
            store.begin_build(key, epoch).await?;
            let build = Build {
                key,
                epoch,
                built_at: COUNTER,
                entries: vec![],
                floor: None,
                taken: Watermarks::default(),
                ahead: vec![],
                notes_from: 0,
                until: Millis::MAX,
            };
            ensure!(store.finish_build(build).await?, "the token was lost");
            Ok(())
        }
    };
    all(0..readers, 512, build).await
}

/// Posts until each reader has about `entries`. Answers how many were appended.
pub(crate) async fn push_all(world: &Arc<World>, store: &Arc<EmbeddedInboxes>, entries: u32) -> anyhow::Result<u64> {
    let steps = u64::from(world.readers) * u64::from(entries) / STEP_MAX as u64;
    let push = |n: u64| {
        let (world, store) = (world.clone(), store.clone());
        async move {
            let authors = u64::from(world.authors());
            let step = world.step((n % authors) as u32, 1 + n / authors, n);
            let moved = tokio::spawn(async move { store.advance(step).await }).await??;
            ensure!(matches!(&moved, Advanced::Moved(grown) if grown.len() == STEP_MAX), "a step did not append");
            Ok(())
        }
    };
    all(0..steps, IN_FLIGHT, push).await?;
    Ok(steps * STEP_MAX as u64)
}

/// Does `work` for each, `in_flight` at a time, in order of their start.
pub(crate) async fn all<T, W: Future<Output = anyhow::Result<()>>>(
    each: impl IntoIterator<Item = T>,
    in_flight: usize,
    work: impl Fn(T) -> W,
) -> anyhow::Result<()> {
    let mut running = FuturesUnordered::new();
    for one in each {
        if running.len() == in_flight
            && let Some(done) = running.next().await
        {
            done?;
        }
        running.push(work(one));
    }
    while let Some(done) = running.next().await {
        done?;
    }
    Ok(())
}
