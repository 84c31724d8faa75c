//! A store on a Redis of the test's own, one reader and one author.

use std::sync::Arc;

use feedgate_common::archive::{Epochs, Recipient};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::inboxes::{Advance, Advanced, Begun, Build, Take, Taken};
use feedgate_common::{
    Bucket, DisplayKey, Entry, Epoch, FeedId, InboxKey, Inboxes, ItemId, Millis, Op, Position, Progress, Record,
    StoreError, UserNo, Watermarks,
};
use feedgate_engines::Redis;
use feedgate_redis::{Link, RedisInboxes};

use crate::support::patient;
pub(crate) use crate::support::{Counter, EPOCHS, server, until};

pub(crate) const BUCKETS: u16 = 4;
pub(crate) const AUTHOR: UserNo = UserNo(7);
/// A reader in bucket 1.
pub(crate) const READER: UserNo = UserNo(5);
pub(crate) const KEY: InboxKey = InboxKey { reader: READER, feed: feedgate_common::FeedId::MAIN };

pub(crate) async fn connect(url: &str) -> Link {
    Link::connect(url, patient()).await.unwrap()
}

pub(crate) async fn open(url: &str) -> Arc<dyn Inboxes> {
    Arc::new(RedisInboxes::open(connect(url).await, EPOCHS.clone(), BUCKETS).await.unwrap())
}

pub(crate) fn record(seq: u64) -> Record {
    let key = DisplayKey { rank: seq as i64, item: ItemId(seq) };
    Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key }
}

pub(crate) fn entry(seq: u64) -> Entry {
    Entry::of(&record(seq), AUTHOR, 5)
}

/// The step that brings the record after `expected` to `readers`, who share a bucket.
pub(crate) fn step(expected: Progress, readers: &[UserNo]) -> Advance {
    let next = expected.done + 1;
    Advance {
        author: AUTHOR,
        bucket: readers[0].bucket(BUCKETS),
        feed: FeedId::MAIN,
        expected,
        next: Progress::at(next),
        records: vec![record(next)],
        recipients: readers
            .iter()
            .map(|&reader| Recipient { reader, generation: 5, from: 0, counter: 1000, listens: false })
            .collect(),
        kept: false,
    }
}

pub(crate) async fn progress(store: &dyn Inboxes, bucket: Bucket) -> Progress {
    store.progress(&[(AUTHOR, bucket)]).await.unwrap()[0]
}

/// Brings the next record to these readers.
pub(crate) async fn push(store: &dyn Inboxes, readers: &[UserNo]) {
    let expected = progress(store, readers[0].bucket(BUCKETS)).await;
    assert!(matches!(store.advance(step(expected, readers)).await.unwrap(), Advanced::Moved(_)));
}

/// Begins a build; answers its epoch.
pub(crate) async fn begin(store: &dyn Inboxes, key: InboxKey) -> Epoch {
    let epoch = EPOCHS.next_epoch().await.unwrap();
    assert_eq!(store.begin_build(key, epoch).await.unwrap(), Some(Begun { placeholder: epoch, notes: 0 }));
    epoch
}

pub(crate) async fn finish(store: &dyn Inboxes, key: InboxKey, epoch: Epoch, entries: Vec<Entry>) -> bool {
    store.finish_build(built(key, epoch, entries)).await.unwrap()
}

/// An inbox that has pulled nothing and stays.
pub(crate) fn built(key: InboxKey, epoch: Epoch, entries: Vec<Entry>) -> Build {
    let taken = Watermarks::default();
    Build { key, epoch, built_at: 10, entries, floor: None, taken, ahead: vec![], notes_from: 0, until: Millis::MAX }
}

/// Both watermarks at `n`.
pub(crate) fn taken(n: u64) -> Watermarks {
    Watermarks { pull: n, direct: n }
}

/// The step that takes the reader's inbox of this epoch from `expected` on by a record that is pulled and one that is
/// addressed.
pub(crate) fn take(epoch: Epoch, expected: u64) -> Take {
    let next = expected + 1;
    let entries = vec![entry(next), Entry::direct(Op::Add, AUTHOR, record(1000 + next).key)];
    Take { key: KEY, epoch, expected: taken(expected), next: taken(next), entries, counter: 1000 }
}

/// Pulls and is addressed `times` times, from the beginning on.
pub(crate) async fn take_in(store: &dyn Inboxes, epoch: Epoch, from: u64, times: u64) {
    for expected in from..from + times {
        let moved = store.take(take(epoch, expected)).await.unwrap();
        assert!(matches!(moved, Taken::Moved { appended: 2, .. }), "{moved:?}");
    }
}

/// Nothing of an inbox that was of this epoch is taken for one that is there, whatever its watermarks were.
pub(crate) async fn takes_nothing(store: &dyn Inboxes, epoch: Epoch, watermarks: std::ops::RangeInclusive<u64>) {
    for expected in watermarks {
        assert_eq!(store.take(take(epoch, expected)).await.unwrap(), Taken::Missing, "{expected}");
    }
    assert_eq!(store.stand(KEY).await.unwrap(), None);
}

/// Builds an inbox, with an epoch taken as often as it is found to be too old.
pub(crate) async fn build(store: &dyn Inboxes, key: InboxKey, entries: Vec<Entry>) -> Epoch {
    build_as(store, |epoch| built(key, epoch, entries.clone())).await
}

/// Builds the inbox that `of` makes for an epoch, as often as its epoch is found to be too old.
pub(crate) async fn build_as(store: &dyn Inboxes, of: impl Fn(Epoch) -> Build) -> Epoch {
    loop {
        let epoch = begin(store, of(Epoch(0)).key).await;
        if store.finish_build(of(epoch)).await.unwrap() {
            return epoch;
        }
    }
}

/// The reader's inbox, with `pushed` records; where it stands.
pub(crate) async fn filled(store: &dyn Inboxes, pushed: u64) -> Position {
    let epoch = build(store, KEY, vec![]).await;
    for _ in 0..pushed {
        push(store, &[READER]).await;
    }
    Position { epoch, offset: pushed }
}

/// What it is refused with.
pub(crate) fn words<T: std::fmt::Debug>(answer: Result<T>) -> String {
    match answer {
        Err(error @ StoreError::Unavailable(_)) => error.to_string(),
        other => panic!("it is not unavailable: {other:?}"),
    }
}

/// Waits until `replica` has all that `master` has written by now. (WAIT speaks only of its own connection's writes.)
pub(crate) fn in_step(master: &Redis, replica: &Redis) {
    let offset = |redis: &Redis, field: &str| -> u64 {
        let info = redis.cli(&["info", "replication"]);
        let line = info.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
        line.trim().parse().unwrap()
    };
    let written = offset(master, "master_repl_offset:");
    while offset(replica, "slave_repl_offset:") < written {
        std::thread::yield_now();
    }
}
