//! Fan-out while Redis loses or refuses something in the middle of it: nothing is lost, and nobody is forgotten.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::archive::{Audience, Publish, PullHead, Write};
use feedgate_common::doorbell::{Closing, Growth, Listening, OnHeard, Onlooker, Stir};
use feedgate_common::error::Result;
use feedgate_common::feed::{Changes, DEFAULT_BACKFILL, Feeds, Publisher};
use feedgate_common::{Body, Doorbell, InboxKey, Millis, OutboxSeq, UserId, UserNo};
use feedgate_embedded::Embedded;
use feedgate_engines::Redis;
use feedgate_redis::{Link, RedisInboxes};
use feedgate_timeline::{FanOut, Settings, Worker};
use parking_lot::Mutex;
use support::{patient, until};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const BUCKETS: u16 = 4;
const NOW: Millis = 1_764_000_000_000;

/// An author and two readers, who follow and have come by, with inboxes in Redis and all else on disk.
struct Town {
    redis: Redis,
    stores: Embedded,
    feeds: Arc<Feeds>,
    changes: Changes,
    step_max: usize,
    author: UserId,
    /// In the order of their buckets.
    readers: Vec<UserNo>,
    _dir: TempDir,
}

impl Town {
    /// A push step takes at most so many recipients.
    async fn open(step_max: usize) -> Arc<Self> {
        let (redis, dir) = (Redis::start(), tempfile::tempdir().unwrap());
        let stores = Embedded::open(dir.path(), BUCKETS).unwrap();
        let link = Link::connect(&redis.url(), patient()).await.unwrap();
        let inboxes = RedisInboxes::open(link, stores.archive.clone(), BUCKETS).await.unwrap();
        let feeds = Arc::new(Feeds::new(stores.archive.clone(), Arc::new(inboxes), DEFAULT_BACKFILL));
        let [author, one, other] = ["ann", "rea", "ron"].map(|name| name.parse::<UserId>().unwrap());
        let names = [one, other];
        let follows = names.iter().map(|reader| Write::Follow { reader: reader.clone(), author: author.clone() });
        stores.archive.write(follows.collect(), NOW).await.unwrap();
        let mut readers = stores.archive.intern(&names).await.unwrap();
        readers.sort_by_key(|reader| reader.bucket(BUCKETS));
        assert_ne!(readers[0].bucket(BUCKETS), readers[1].bucket(BUCKETS));
        let changes = Changes::new(feeds.clone());
        let town = Self { redis, stores, feeds, changes, step_max, author, readers, _dir: dir };
        for reader in &town.readers {
            town.visit(*reader).await;
        }
        Arc::new(town)
    }

    async fn visit(&self, reader: UserNo) {
        self.changes.head(InboxKey::main(reader)).await.unwrap();
    }

    async fn publish(&self) {
        let publish = Publish {
            audience: Audience::default(),
            ..Publish::new(self.author.clone(), Body::parse("1".to_owned()).unwrap())
        };
        let publisher = Publisher::new(self.stores.archive.clone(), self.stores.jobs.clone());
        publisher.write(vec![Write::Publish(publish)], NOW).await.unwrap().remove(0).unwrap();
    }

    /// A worker that takes one bucket at a time and sweeps once, at the start.
    fn work(&self, doorbell: Arc<dyn Doorbell>) -> JoinHandle<()> {
        let settings = Settings { buckets_at_once: 1, sweep_every: Duration::from_secs(3600), ..Settings::default() };
        let fan_out = FanOut::new(self.feeds.clone()).with_step_max(self.step_max);
        let worker = Worker::new(fan_out, self.stores.jobs.clone(), doorbell, settings);
        tokio::spawn(async move { worker.run(CancellationToken::new()).await })
    }

    /// How far push of the author has come in the bucket of each reader.
    async fn done(&self) -> Vec<OutboxSeq> {
        let author = self.stores.archive.intern(std::slice::from_ref(&self.author)).await.unwrap()[0];
        let of: Vec<_> = self.readers.iter().map(|reader| (author, reader.bucket(BUCKETS))).collect();
        self.feeds.inboxes().progress(&of).await.unwrap().into_iter().map(|progress| progress.done).collect()
    }

    async fn is_drained(&self) -> bool {
        let left = self.stores.archive.outstanding(None, Millis::MAX, 1).await.unwrap();
        left.is_empty() && self.stores.jobs.pending().await.unwrap() == 0
    }
}

/// Notes who is rung for. The first time it is the last reader, Redis loses everything, if it is to, and the first
/// reader, whose bucket is done, comes back at once.
struct Bell {
    town: Arc<Town>,
    loses: AtomicBool,
    rung: Mutex<Vec<UserNo>>,
}

impl Bell {
    fn new(town: &Arc<Town>, loses: bool) -> Arc<Self> {
        Arc::new(Self { town: town.clone(), loses: loses.into(), rung: Mutex::default() })
    }
}

#[async_trait]
impl Doorbell for Bell {
    async fn ring(&self, growth: &Growth) {
        let readers: Vec<UserNo> = growth.inboxes.iter().map(|grown| grown.key.reader).collect();
        if readers.contains(&self.town.readers[1]) && self.loses.swap(false, Ordering::SeqCst) {
            self.town.redis.cli(&["flushall"]);
            self.town.visit(self.town.readers[0]).await;
        }
        self.rung.lock().extend(readers);
    }

    async fn hot(&self, _head: PullHead) {}

    async fn close(&self, _node: &str, _user: UserNo, _connection: u64, _why: Closing) -> bool {
        true
    }

    async fn pass(&self, _node: &str, _session: u128, _message: &[u8]) {}

    async fn seen(&self, _by: Onlooker<'_>) {}

    async fn stirred(&self, _stir: &Stir) {}

    async fn confirm(&self, _users: &[UserNo]) {}

    fn listen(&self, _on_heard: OnHeard) -> Listening {
        Listening::until(|| {})
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}

/// The steps have committed when Redis loses them; a reader is back before the fan-out is finished.
async fn what_is_lost_before_the_end_comes_again(step_max: usize) {
    let town = Town::open(step_max).await;
    let bell = Bell::new(&town, true);
    let worker = town.work(bell.clone());
    until("the follows are swept up", async || town.is_drained().await).await;
    town.publish().await;
    until("the fan-out is finished", async || town.is_drained().await).await;
    assert!(!bell.loses.load(Ordering::SeqCst), "Redis was emptied");
    for reader in &town.readers {
        let log = town.changes.log(InboxKey::main(*reader)).await.unwrap();
        assert_eq!(log.entries.len(), 1, "{reader:?}");
    }
    // A rebuild brings the post by itself. That push has been through all buckets again is seen by its progress.
    assert_eq!(town.done().await, [1, 1]);
    worker.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_what_redis_loses_during_a_round_is_fanned_out_again() {
    what_is_lost_before_the_end_comes_again(1000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_what_redis_loses_of_one_bucket_while_the_others_are_served_is_fanned_out_again() {
    what_is_lost_before_the_end_comes_again(1).await;
}

/// In the bucket of this reader no step succeeds.
async fn the_other_bucket_is_served_and_rung_for(step_max: usize, reader: usize) {
    let town = Town::open(step_max).await;
    let bell = Bell::new(&town, false);
    let (damaged, whole) = (town.readers[reader], town.readers[1 - reader]);
    let worker = town.work(bell.clone());
    until("the follows are swept up", async || town.is_drained().await).await;
    let key = format!("{{b{:03}}}:{}:0", damaged.bucket(BUCKETS).0, damaged.0);
    assert_eq!(town.redis.cli(&["set", &key, "nothing of ours"]).trim(), "OK");
    town.publish().await;
    until("the other reader is rung for", async || bell.rung.lock().contains(&whole)).await;
    assert!(!town.is_drained().await, "the damaged one is still owed");
    worker.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_fails_during_a_round_silences_no_other() {
    the_other_bucket_is_served_and_rung_for(1000, 0).await;
    the_other_bucket_is_served_and_rung_for(1000, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_fails_holds_up_none_behind_it() {
    the_other_bucket_is_served_and_rung_for(1, 0).await;
}
