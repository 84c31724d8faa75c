//! The inboxes where another version has written, or where there are more than are counted one by one.

use feedgate_common::inboxes::{Advanced, InboxCounts};
use feedgate_common::{InboxKey, Progress, StoreError, UserNo};
use feedgate_engines::Redis;
use feedgate_redis::{Epochs, RedisInboxes};

use crate::world::{
    AUTHOR, BUCKETS, EPOCHS, KEY, READER, build, connect, entry, finish, open, progress, push, server, step,
};

/// As version 1 left it: in each bucket an epoch that counts, in the reader's progress of the author, an inbox of that
/// epoch as it was built, one with three marks, and a build in flight. ARGV: the epoch.
const VERSION_1: &str = "
local life = string.match(redis.call('INFO', 'replication'), 'master_replid:%x+')
local header = struct.pack('<BI7I7I7', 1, ARGV[1], 0, 10) .. string.rep(string.char(0), 17)
for bucket = 0, 3 do
  local key = '{b00' .. bucket .. '}'
  redis.call('HSET', key, 'layout', '1/4', 'life', life, 'epoch', ARGV[1], 'inboxes', '2', 'entries', '2', '7', '2')
end
redis.call('RPUSH', '{b001}:5:0', header, 'an entry')
redis.call('RPUSH', '{b001}:9:0', header .. string.rep(struct.pack('<I4I7', 7, 5), 3), 'an entry')
redis.call('RPUSH', '{b001}:13:0', struct.pack('<BI7', 0, ARGV[1]))";

#[tokio::test(flavor = "multi_thread")]
async fn i16_what_an_earlier_version_left_is_missing_and_built_again_without_anybody_emptying_redis() {
    let redis = server();
    let old = EPOCHS.next_epoch().await.unwrap();
    redis.cli(&["eval", VERSION_1, "0", &old.0.to_string()]);
    let store = open(&redis.url()).await;
    let [marked, begun] = [9, 13].map(|reader| InboxKey::main(UserNo(reader)));
    assert_eq!(store.heads(&[KEY, marked, begun]).await.unwrap(), [None, None, None]);
    assert_eq!((store.log(KEY).await.unwrap(), store.log(marked).await.unwrap()), (None, None));
    assert_eq!(store.counts().await.unwrap(), InboxCounts::default());
    assert!(!finish(&*store, begun, old, vec![]).await, "its reader comes back and begins again");
    assert_eq!(progress(&*store, READER.bucket(BUCKETS)).await, Progress::at(2), "nothing is fanned out again");
    let pushed = store.advance(step(Progress::at(2), &[READER, marked.reader])).await.unwrap();
    assert_eq!(pushed, Advanced::Moved(vec![]));
    assert_eq!(redis.cli(&["exists", "{b001}:5:0", "{b001}:9:0"]).trim(), "0", "what is met is dropped");
    assert!(build(&*store, KEY, vec![entry(1)]).await > old);
    push(&*store, &[READER]).await;
    assert_eq!(store.counts().await.unwrap(), InboxCounts { inboxes: 1, entries: 2 });
    assert_eq!(redis.cli(&["hget", "{b001}", "layout"]).trim(), "4/4");
    assert_eq!(redis.cli(&["hexists", "{b001}", "entries"]).trim(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_later_version_wrote_is_refused_and_stays() {
    let redis = server();
    let store = open(&redis.url()).await;
    let epoch = build(&*store, KEY, vec![entry(1)]).await;
    redis.cli(&["hset", "{b000}", "layout", "5/4"]);
    redis.cli(&["hset", "{b001}", "layout", "5/4"]);
    let refused = RedisInboxes::open(connect(&redis.url()).await, EPOCHS.clone(), BUCKETS).await.err().unwrap();
    assert!(
        matches!(&refused, StoreError::Corrupt(words) if words.contains("5/4") && words.contains("4/4")),
        "{refused}"
    );
    assert!(matches!(store.log(KEY).await, Err(StoreError::Corrupt(_))));
    redis.cli(&["hset", "{b001}", "layout", "4/4"]);
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
