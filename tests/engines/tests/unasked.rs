//! A worker begins where events are finished and does not ask for the progress, over a real PostgreSQL and a real
//! Redis.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::accept::Policy;
use feedgate_common::archive::{Event, Events, Names, Publish, Write, Writes};
use feedgate_common::feed::{Changes, DEFAULT_BACKFILL, Feeds};
use feedgate_common::{Archive, Body, Bucket, InboxKey, Millis, OutboxSeq, UserNo};
use feedgate_engines::{Postgres, Redis};
use feedgate_postgres::{Options, PostgresArchive};
use feedgate_redis::{Link, RedisInboxes, Timeouts};
use feedgate_timeline::FanOut;
use feedgate_timeline::fanout::{Left, Round};

/// No call fails because the machine is slow.
const PATIENT: Timeouts = Timeouts { connect: Duration::from_secs(300), call: Duration::from_secs(300) };
const BUCKETS: u16 = 16;
const READERS: usize = 12;
const NOW: Millis = 1_800_000_000_000;

/// Twelve readers, who follow one author and have come by.
struct Town {
    redis: Redis,
    archive: Arc<PostgresArchive>,
    changes: Changes,
    feeds: Arc<Feeds>,
    fan_out: FanOut,
    author: UserNo,
    readers: Vec<UserNo>,
}

impl Town {
    async fn open(database: &str) -> Self {
        let (postgres, redis) = (Postgres::shared().database(database), Redis::start());
        let options = Options { max_connections: 4, buckets: BUCKETS, policy: Policy::default(), ..Options::default() };
        let archive = Arc::new(PostgresArchive::connect(&postgres, options).await.unwrap());
        let link = Link::connect(&redis.url(), PATIENT).await.unwrap();
        let inboxes = RedisInboxes::open(link, archive.clone(), BUCKETS).await.unwrap();
        let feeds = Arc::new(Feeds::new(archive.clone() as Arc<dyn Archive>, Arc::new(inboxes), DEFAULT_BACKFILL));
        let names: Vec<_> = (0..READERS).map(|n| format!("reader{n}").parse().unwrap()).collect();
        let author = "ann".parse().unwrap();
        for reader in &names {
            let follow = Write::Follow { reader: Clone::clone(reader), author: Clone::clone(&author) };
            archive.write(vec![follow], NOW).await.unwrap().remove(0).unwrap();
        }
        let (readers, author) = (archive.intern(&names).await.unwrap(), archive.intern(&[author]).await.unwrap()[0]);
        let (changes, fan_out) = (Changes::new(feeds.clone()), FanOut::new(feeds.clone()));
        let town = Self { redis, archive, changes, feeds, fan_out, author, readers };
        for reader in &town.readers {
            town.changes.head(InboxKey::main(*reader)).await.unwrap();
        }
        town
    }

    async fn publish(&self) {
        let publish = Publish::new("ann".parse().unwrap(), Body::parse("1".to_owned()).unwrap());
        self.archive.write(vec![Write::Publish(publish)], NOW).await.unwrap().remove(0).unwrap();
    }

    async fn finish(&self, seq: OutboxSeq) {
        let event = Event::Outbox { author: self.author, seq, redo: 0 };
        assert_eq!(self.archive.finish(&[event]).await.unwrap(), []);
    }

    /// How many scripts Redis has run since it was last asked.
    fn scripts(&self) -> u64 {
        let stats = self.redis.cli(&["info", "commandstats"]);
        self.redis.cli(&["config", "resetstat"]);
        let calls = stats.lines().filter(|line| line.starts_with("cmdstat_eval"));
        calls.filter_map(|line| line.split(['=', ',']).nth(1)).map(|calls| calls.parse::<u64>().unwrap()).sum()
    }
}

/// The readers whose inboxes have grown in a round.
fn grown(round: &Round) -> usize {
    round.grown.iter().map(|growth| growth.inboxes.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_to_twelve_followers_in_all_buckets_takes_one_script() {
    let town = Town::open("unasked").await;
    town.publish().await;
    let unknown = town.fan_out.advance_unfinished(town.author).await.unwrap();
    assert_eq!((grown(&unknown), unknown.left), (0, Left::AnotherRound(0)), "nobody has said how far it is finished");
    town.scripts();
    let first = town.fan_out.advance_all(town.author).await.unwrap();
    assert_eq!((grown(&first), first.left), (READERS, Left::Nothing(1)));
    assert!(town.scripts() > u64::from(BUCKETS), "each bucket was asked for its progress");
    town.finish(1).await;
    for seq in 2..4 {
        town.publish().await;
        town.scripts();
        let round = town.fan_out.advance_unfinished(town.author).await.unwrap();
        assert_eq!((grown(&round), round.left, town.scripts()), (READERS, Left::Nothing(seq), 1));
        town.finish(seq).await;
    }
    let idle = town.fan_out.advance_unfinished(town.author).await.unwrap();
    assert_eq!((grown(&idle), idle.left, town.scripts()), (0, Left::Nothing(3), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_a_worker_that_begins_where_events_are_finished_asks_if_that_is_wrong() {
    let town = Town::open("unasked_wrong").await;
    town.publish().await;
    town.fan_out.advance_all(town.author).await.unwrap();
    town.finish(1).await;
    town.redis.cli(&["flushall"]);
    town.publish().await;
    let refused = town.fan_out.advance_unfinished(town.author).await.unwrap();
    assert_eq!((grown(&refused), refused.left), (0, Left::AnotherRound(0)));
    let of: Vec<_> = (0..BUCKETS).map(|bucket| (town.author, Bucket(bucket))).collect();
    let progress =
        async || town.feeds.inboxes().progress(&of).await.unwrap().iter().map(|of| of.done).collect::<Vec<_>>();
    assert_eq!(progress().await, [0; BUCKETS as usize], "no bucket has passed what was lost");
    assert_eq!(town.fan_out.advance_all(town.author).await.unwrap().left, Left::Nothing(2));
    assert_eq!(progress().await, [2; BUCKETS as usize]);
    for reader in &town.readers {
        assert_eq!(town.changes.log(InboxKey::main(*reader)).await.unwrap().entries.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_two_workers_that_begin_where_events_are_finished_bring_a_post_once() {
    let town = Town::open("unasked_twice").await;
    town.publish().await;
    town.fan_out.advance_all(town.author).await.unwrap();
    town.finish(1).await;
    town.publish().await;
    let other = FanOut::new(town.feeds.clone());
    let (one, other) =
        tokio::join!(town.fan_out.advance_unfinished(town.author), other.advance_unfinished(town.author));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(grown(&one) + grown(&other), READERS);
    for reader in &town.readers {
        assert_eq!(town.changes.log(InboxKey::main(*reader)).await.unwrap().entries.len(), 2);
    }
}
