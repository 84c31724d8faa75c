//! The inboxes when Redis has lost what it held, in each of the ways it can. All the time through one store, whose
//! connection may stand as if nothing had been.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedgate_common::archive::Epochs;
use feedgate_common::inboxes::{Advanced, Begun, Read, Taken};
use feedgate_common::{Entry, Epoch, InboxKey, Inboxes, Position, Progress, StoreError, UserNo};
use feedgate_conformance::inboxes::InboxesExt as _;
use feedgate_engines::Redis;
use feedgate_redis::RedisInboxes;

use crate::world::{
    BUCKETS, Counter, EPOCHS, KEY, READER, begin, build, connect, entry, filled, finish, in_step, open, progress, push,
    server, step, take, take_in, taken, takes_nothing, until,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Flushed,
    BucketEvicted,
    RestartedWithout,
    RestartedWith,
    RolledBack,
    /// A replica that had stopped listening became the master, and ours its replica and then a master again: the same
    /// process, the same connections.
    Overwritten,
}

const LOSSES: [Loss; 6] = [
    Loss::Flushed,
    Loss::BucketEvicted,
    Loss::RestartedWithout,
    Loss::RestartedWith,
    Loss::RolledBack,
    Loss::Overwritten,
];

/// What Redis held some time ago, in a copy of its files and in a replica.
struct Before {
    files: tempfile::TempDir,
    replica: Redis,
}

impl Before {
    /// `replica` has been one for as long as there is data: a master that gets its first replica takes another
    /// replication id, which would be a loss too.
    fn of(redis: &Redis, replica: Redis) -> Self {
        in_step(redis, &replica);
        replica.cli(&["replicaof", "no", "one"]);
        let files = tempfile::tempdir().unwrap();
        redis.copy_files(files.path());
        Self { files, replica }
    }
}

impl Loss {
    fn happens(self, redis: &mut Redis, before: &Before) {
        match self {
            Self::Flushed => _ = redis.cli(&["flushall"]),
            Self::BucketEvicted => assert_eq!(redis.cli(&["del", "{b001}"]).trim(), "1"),
            Self::RestartedWith => redis.restart(),
            Self::RestartedWithout => redis.restart_without_files(),
            Self::RolledBack => redis.roll_back(before.files.path()),
            Self::Overwritten => redis.overwrite_with(&before.replica),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_after_any_loss_no_epoch_from_before_it_is_served_or_grows() {
    for loss in LOSSES {
        let mut redis = server();
        let replica = Redis::replica_of(&redis);
        let store = open(&redis.url()).await;
        filled(&*store, 2).await;
        let before = Before::of(&redis, replica);
        let mut served = store.heads(&[KEY]).await.unwrap()[0].unwrap();
        for _ in 0..3 {
            push(&*store, &[READER]).await;
            served.offset += 1;
        }
        let read = store.read(KEY, served, 9).await.unwrap();
        assert_eq!(read, Read::Entries { entries: vec![], head: 5, taken: taken(0) }, "{loss:?}");

        loss.happens(&mut redis, &before);
        until("Redis is reached again", async || store.ping().await.is_ok()).await;
        assert_eq!(store.read(KEY, served, 9).await.unwrap(), Read::Missing, "{loss:?}");
        the_inbox_is_gone(&*store, served, loss).await;
    }
}

/// The first call after the loss may be any: here it is a step with the old progress.
#[tokio::test(flavor = "multi_thread")]
async fn i16_a_step_that_was_decided_before_a_loss_appends_nothing() {
    for loss in LOSSES {
        let mut redis = server();
        let replica = Redis::replica_of(&redis);
        let store = open(&redis.url()).await;
        filled(&*store, 2).await;
        let before = Before::of(&redis, replica);
        let served = store.heads(&[KEY]).await.unwrap()[0].unwrap();
        let decided = step(Progress::at(2), &[READER]);
        loss.happens(&mut redis, &before);
        until("Redis is reached again", async || store.ping().await.is_ok()).await;
        match store.advance(decided).await.unwrap() {
            Advanced::Moved(grown) => assert_eq!(grown, [], "{loss:?}"),
            Advanced::Overtaken(progress) => assert!(progress < Progress::at(2), "{loss:?}"),
            Advanced::Stale => panic!("{loss:?}"),
        }
        the_inbox_is_gone(&*store, served, loss).await;
    }
}

/// What was taken in before the copy was made, and after it: a log that is rolled back takes both along, or a step
/// would pass by what the log has lost.
#[tokio::test(flavor = "multi_thread")]
async fn i16_no_watermark_outlives_its_log() {
    for loss in LOSSES {
        let mut redis = server();
        let replica = Redis::replica_of(&redis);
        let store = open(&redis.url()).await;
        let epoch = build(&*store, KEY, vec![]).await;
        take_in(&*store, epoch, 0, 2).await;
        let before = Before::of(&redis, replica);
        take_in(&*store, store.stand(KEY).await.unwrap().unwrap().head.epoch, 2, 3).await;
        let served = store.stand(KEY).await.unwrap().unwrap();
        assert_eq!((served.taken, served.head.offset), (taken(5), 10), "{loss:?}");

        loss.happens(&mut redis, &before);
        until("Redis is reached again", async || store.ping().await.is_ok()).await;
        takes_nothing(&*store, served.head.epoch, 0..=6).await;
        the_inbox_is_gone(&*store, served.head, loss).await;
        assert_eq!(store.stand(KEY).await.unwrap().unwrap().taken, taken(0), "{loss:?}: as it was built");
        assert_eq!(store.take(take(served.head.epoch, 0)).await.unwrap(), Taken::Overtaken, "{loss:?}");
    }
}

async fn the_inbox_is_gone(store: &dyn Inboxes, served: Position, loss: Loss) {
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [None], "{loss:?}");
    assert_eq!(store.log(KEY).await.unwrap(), None, "{loss:?}");
    assert_eq!(store.counts().await.unwrap().inboxes, 0, "{loss:?}");
    let reached = progress(store, READER.bucket(BUCKETS)).await;
    assert!(reached <= Progress::at(5), "{loss:?}: {reached:?}");
    let epoch = build(store, KEY, vec![entry(1)]).await;
    assert!(epoch > served.epoch);
    let head = Position { epoch, offset: 1 };
    assert_eq!(store.read(KEY, served, 9).await.unwrap(), Read::Gone { head }, "{loss:?}");
    assert_eq!(store.counts().await.unwrap().inboxes, 1, "{loss:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_a_build_begun_before_a_loss_is_not_swapped_in() {
    for loss in LOSSES {
        let mut redis = server();
        let replica = Redis::replica_of(&redis);
        let store = open(&redis.url()).await;
        let epoch = begin(&*store, KEY).await;
        let before = Before::of(&redis, replica);
        loss.happens(&mut redis, &before);
        until("Redis is reached again", async || store.ping().await.is_ok()).await;
        assert!(!finish(&*store, KEY, epoch, vec![entry(1)]).await, "{loss:?}");
        assert_eq!(store.log(KEY).await.unwrap(), None, "{loss:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_an_inbox_or_a_half_built_one_that_is_evicted_is_missing_and_the_others_stay() {
    let redis = server();
    let store = open(&redis.url()).await;
    let served = filled(&*store, 2).await;
    let other = InboxKey::main(UserNo(READER.0 + 4));
    build(&*store, other, vec![entry(1)]).await;
    redis.cli(&["del", "{b001}:5:0"]);
    assert_eq!(store.read(KEY, served, 9).await.unwrap(), Read::Missing);
    assert!(store.heads(&[other]).await.unwrap()[0].is_some());
    let epoch = begin(&*store, KEY).await;
    redis.cli(&["del", "{b001}:5:0"]);
    assert!(!finish(&*store, KEY, epoch, vec![]).await);
    assert!(build(&*store, KEY, vec![]).await > served.epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_a_promoted_replica_that_missed_writes_serves_no_epoch_of_its_master() {
    let redis = server();
    let replica = Redis::replica_of(&redis);
    let store = open(&redis.url()).await;
    filled(&*store, 2).await;
    let before = Before::of(&redis, replica);
    push(&*store, &[READER]).await;
    let served = store.heads(&[KEY]).await.unwrap()[0].unwrap();
    let promoted = open(&before.replica.url()).await;
    assert_eq!(promoted.read(KEY, served, 9).await.unwrap(), Read::Missing);
    assert_eq!(progress(&*promoted, READER.bucket(BUCKETS)).await, Progress::at(2), "progress may be behind");
    the_inbox_is_gone(&*promoted, served, Loss::Overwritten).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_was_given_before_is_refused_with_what_may_have_happened() {
    let mut redis = server();
    let store = open(&redis.url()).await;
    filled(&*store, 1).await;
    let old = Arc::new(Counter::default());
    let rolled_back = RedisInboxes::open(connect(&redis.url()).await, old.clone(), BUCKETS).await.unwrap();
    redis.restart();
    until("Redis is reached again", async || rolled_back.ping().await.is_ok()).await;
    let refused = rolled_back.log(KEY).await;
    assert!(
        matches!(&refused, Err(StoreError::Corrupt(words)) if words.contains("was it restored from a copy?")),
        "{refused:?}"
    );
    old.0.store(EPOCHS.0.load(Ordering::Relaxed), Ordering::Relaxed);
    assert_eq!(rolled_back.log(KEY).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_buckets_is_refused_with_both_numbers() {
    let redis = server();
    let _store = open(&redis.url()).await;
    let refused = RedisInboxes::open(connect(&redis.url()).await, EPOCHS.clone(), 8).await.err().unwrap();
    assert!(refused.to_string().contains("1/4") && refused.to_string().contains("1/8"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_a_new_replication_id_is_a_new_life_even_if_nothing_was_lost() {
    let redis = server();
    let store = open(&redis.url()).await;
    let served = filled(&*store, 2).await;
    let _first_replica = Redis::replica_of(&redis);
    assert_eq!(store.read(KEY, served, 9).await.unwrap(), Read::Missing);
}

/// Any key may go at any time: an inbox, a build, the bucket with all its progress.
#[tokio::test(flavor = "multi_thread")]
async fn i16_whichever_keys_are_evicted_an_epoch_holds_what_was_put_there_and_nothing_else() {
    let redis = server();
    let store = open(&redis.url()).await;
    let readers: Vec<UserNo> = (0..5).map(|n| UserNo(READER.0 + n * u32::from(BUCKETS))).collect();
    let mut logs: HashMap<Epoch, Vec<Entry>> = HashMap::new();
    for round in 0..120 {
        for key in readers.iter().map(|reader| InboxKey::main(*reader)) {
            if store.heads(&[key]).await.unwrap() == [None] {
                let epoch = begin(&*store, key).await;
                if round % 3 == 0 {
                    redis.cli(&["del", redis.cli(&["randomkey"]).trim()]);
                }
                if finish(&*store, key, epoch, vec![entry(1_000_000)]).await {
                    assert_eq!(logs.insert(epoch, vec![entry(1_000_000)]), None, "an epoch begins once");
                }
            }
        }
        let expected = progress(&*store, READER.bucket(BUCKETS)).await;
        if round % 2 == 0 {
            redis.cli(&["del", redis.cli(&["randomkey"]).trim()]);
        }
        let Advanced::Moved(grown) = store.advance(step(expected, &readers)).await.unwrap() else { continue };
        for grown in grown {
            let log = logs.get_mut(&grown.head.epoch).unwrap();
            log.push(entry(expected.done + 1));
            assert_eq!(grown.head.offset, log.len() as u64);
        }
        for reader in &readers {
            let Some(log) = store.log(InboxKey::main(*reader)).await.unwrap() else { continue };
            let entries: Vec<_> = log.entries.iter().map(|n| n.entry).collect();
            assert_eq!(entries, logs[&log.head.epoch]);
        }
    }
    assert!(logs.len() > readers.len(), "{} epochs: nothing was evicted", logs.len());
}

/// Its builder read the progress before the loss, and would take push to have brought what it has to bring again.
#[tokio::test(flavor = "multi_thread")]
async fn i3_a_build_of_before_a_loss_does_not_join_one_of_after_it() {
    let redis = server();
    let store = open(&redis.url()).await;
    let before = EPOCHS.next_epoch().await.unwrap();
    redis.cli(&["flushall"]);
    assert_eq!(progress(&*store, READER.bucket(BUCKETS)).await, Progress::default());
    let after = begin(&*store, KEY).await;
    let alone = store.begin_build(KEY, before).await.unwrap();
    assert_eq!(alone, Some(Begun { placeholder: before, notes: 0 }));
    assert!(!finish(&*store, KEY, before, vec![entry(1)]).await);
    assert!(finish(&*store, KEY, after, vec![]).await, "the other goes on");
}
