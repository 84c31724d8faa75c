//! The steps as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::archive::{Epochs, Recipient};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::inboxes::{Advance, Advanced, Build, Take, Taken};
use feedgate_common::{
    Bucket, DisplayKey, Entry, Epoch, FeedId, InboxKey, Inboxes, ItemId, Millis, Op, Progress, Record, UserNo,
    Watermarks,
};
use feedgate_redis::{Link, RedisInboxes, Timeouts};
use futures_util::{StreamExt, stream};

use crate::server::Server;
use crate::{APPENDS, READERS, Table};

const AUTHOR: UserNo = UserNo(90_000);
/// The epoch of every inbox.
const EPOCH: Epoch = Epoch(1_000_000);
/// Steps that wait for Redis at the same time.
const ABREAST: usize = 4;

#[derive(Default)]
struct Counter(AtomicU64);

#[async_trait]
impl Epochs for Counter {
    async fn next_epoch(&self) -> Result<Epoch> {
        Ok(Epoch(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// An item posted ten minutes after the one before.
pub(crate) fn record(seq: u64) -> Record {
    let ms = 1_764_000_000_000 + 600_000 * seq as i64;
    Record {
        seq,
        op: Op::Add,
        route: Route::Push,
        feed: FeedId::MAIN,
        key: DisplayKey { rank: ms, item: ItemId(((ms as u64) << 22) + 3) },
    }
}

/// A change as a reader's log has it, of one of a thousand authors.
pub(crate) fn entry(seq: u64) -> Entry {
    Entry::of(&record(seq), UserNo(AUTHOR.0 + seq as u32 % 1000), 100 + seq % 300)
}

/// Readers 1 to `READERS` with empty inboxes.
pub(crate) async fn open(server: &Server) -> RedisInboxes {
    // Others' work may hold the machine up: that is waited for, not measured.
    let patient = Timeouts { call: Duration::from_secs(30), ..Timeouts::default() };
    let link = Link::connect(&server.redis.url(), patient).await.unwrap();
    let store = RedisInboxes::open(link, Arc::new(Counter::default()), 1).await.unwrap();
    for reader in 1..=READERS {
        build(&store, InboxKey::main(UserNo(reader)), vec![]).await;
    }
    store
}

pub(crate) async fn build(store: &RedisInboxes, key: InboxKey, entries: Vec<Entry>) {
    store.begin_build(key, EPOCH).await.unwrap();
    let taken = Watermarks::default();
    let build = Build {
        key,
        epoch: EPOCH,
        built_at: 1000,
        entries,
        floor: None,
        taken,
        ahead: vec![],
        notes_from: 0,
        until: Millis::MAX,
    };
    assert!(store.finish_build(build).await.unwrap());
}

fn step(author: UserNo, done: u64, readers: std::ops::Range<u32>, records: u64) -> Advance {
    let recipient = |reader| Recipient {
        reader: UserNo(reader),
        generation: 200 + u64::from(reader % 300),
        from: 0,
        counter: 2000,
        listens: false,
    };
    Advance {
        author,
        bucket: Bucket(0),
        feed: FeedId::MAIN,
        expected: Progress::at(done),
        next: Progress::at(done + records),
        records: (done + 1..=done + records).map(record).collect(),
        recipients: readers.map(recipient).collect(),
        kept: false,
    }
}

pub(crate) async fn measure(table: &mut Table) {
    for (name, readers, records, rounds) in [
        ("our step, 1000 recipients x 1 record", 1000, 1, 1),
        ("our step, 1000 recipients x 8 records", 1000, 8, 1),
        ("our step, 20 recipients x 1 record", 20, 1, 1),
        ("our step, 1000 x 8, logs full: with trims", 1000, 8, 6),
    ] {
        let server = Server::start().await;
        let store = open(&server).await;
        let steps = rounds * APPENDS / (u64::from(readers) * records);
        let run = stream::iter(0..ABREAST as u64).for_each_concurrent(ABREAST, |worker| {
            let store = &store;
            async move {
                for n in 0..steps / ABREAST as u64 {
                    let first = 1 + (n as u32 * readers) % READERS;
                    let step = step(UserNo(AUTHOR.0 + worker as u32), n * records, first..first + readers, records);
                    let Advanced::Moved(grown) = store.advance(step).await.unwrap() else { panic!("it moves") };
                    assert_eq!(grown.len(), readers as usize);
                }
            }
        });
        table.line(name, rounds * APPENDS, &server, run).await;
    }
}

/// Each reader takes in what is new, `entries` at a time, until there are as many appends as in a push.
pub(crate) async fn measure_takes(table: &mut Table) {
    for (name, entries) in [("take, 1 entry", 1), ("take, 10 entries", 10)] {
        let server = Server::start().await;
        let store = open(&server).await;
        let rounds = APPENDS / (u64::from(READERS) * entries);
        let run = stream::iter(0..ABREAST as u32).for_each_concurrent(ABREAST, |worker| {
            let store = &store;
            async move {
                for n in 0..rounds {
                    for reader in (1..=READERS).filter(|reader| *reader as usize % ABREAST == worker as usize) {
                        let step = take(InboxKey::main(UserNo(reader)), n * entries, entries);
                        let moved = store.take(step).await.unwrap();
                        assert!(matches!(moved, Taken::Moved { appended, .. } if u64::from(appended) == entries));
                    }
                }
            }
        });
        table.line(name, APPENDS, &server, run).await;
    }
}

fn take(key: InboxKey, pulled: u64, entries: u64) -> Take {
    let at = |pull| Watermarks { pull, direct: 0 };
    let (expected, next) = (at(pulled), at(pulled + entries));
    let entries = (pulled + 1..=next.pull).map(entry).collect();
    Take { key, epoch: EPOCH, expected, next, entries, counter: 2000 }
}
