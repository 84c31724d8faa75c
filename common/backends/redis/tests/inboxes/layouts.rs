//! The inboxes where another version has written, or where there are more than are counted one by one.

use feedgate_common::{Progress, StoreError, UserNo};
use feedgate_engines::Redis;
use feedgate_redis::RedisInboxes;

use crate::world::{AUTHOR, BUCKETS, EPOCHS, KEY, READER, build, connect, entry, open, push, server};

#[tokio::test(flavor = "multi_thread")]
async fn what_another_version_wrote_is_refused_and_stays() {
    let redis = server();
    let store = open(&redis.url()).await;
    let epoch = build(&*store, KEY, vec![entry(1)]).await;
    redis.cli(&["hset", "{b000}", "layout", "2/4"]);
    redis.cli(&["hset", "{b001}", "layout", "2/4"]);
    let refused = RedisInboxes::open(connect(&redis.url()).await, EPOCHS.clone(), BUCKETS).await.err().unwrap();
    assert!(
        matches!(&refused, StoreError::Corrupt(words) if words.contains("2/4") && words.contains("1/4")),
        "{refused}"
    );
    assert!(matches!(store.log(KEY).await, Err(StoreError::Corrupt(_))));
    redis.cli(&["hset", "{b001}", "layout", "1/4"]);
    assert_eq!(store.log(KEY).await.unwrap().unwrap().head.epoch, epoch);
    assert_eq!(store.progress(&[(AUTHOR, READER.bucket(BUCKETS))]).await.unwrap(), [Progress::default()]);
}

/// Two entries each, like the reader's own, which is one of them; and half as many keys that are none of ours.
const MANY: &str = "
local elements = redis.call('LRANGE', KEYS[1], 0, -1)
for n = 1, 5999 do redis.call('RPUSH', '{b001}:' .. 5 + 4 * n .. ':0', unpack(elements)) end
for n = 1, 3000 do redis.call('SET', 'other:' .. n, n) end";

#[tokio::test(flavor = "multi_thread")]
async fn i18_many_inboxes_are_counted_by_a_sample() {
    let redis = Redis::start();
    let store = open(&redis.url()).await;
    build(&*store, KEY, vec![entry(1), entry(2)]).await;
    redis.cli(&["eval", MANY, "1", "{b001}:5:0"]);
    let counts = store.counts().await.unwrap();
    assert!((5400..6600).contains(&counts.inboxes), "{counts:?}");
    assert!(counts.entries.abs_diff(2 * counts.inboxes) <= 1, "all alike: {counts:?}");
}

/// Redis does one thing at a time: nobody waits for one reader's 300,000 authors.
#[tokio::test(flavor = "multi_thread")]
async fn i18_the_progress_of_all_whom_a_reader_follows_is_asked_for_some_at_a_time() {
    const FOLLOWEES: u32 = 300_000;
    let redis = Redis::start();
    let store = open(&redis.url()).await;
    push(&*store, &[READER]).await;
    redis.cli(&["config", "resetstat"]);
    redis.cli(&["config", "set", "slowlog-log-slower-than", "200"]);
    let of: Vec<_> = (0..FOLLOWEES).map(|author| (UserNo(author), READER.bucket(BUCKETS))).collect();
    let reached = store.progress(&of).await.unwrap();
    assert_eq!(reached.len(), of.len());
    assert!(reached.iter().enumerate().all(|(n, at)| at.done == u64::from(UserNo(n as u32) == AUTHOR)));
    let stats = redis.cli(&["info", "commandstats"]);
    let scripts =
        stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next()?.parse().ok());
    assert!(scripts.is_some_and(|scripts: u32| scripts >= FOLLOWEES / 500), "{stats}");
}
