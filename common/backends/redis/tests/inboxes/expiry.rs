//! When inboxes expire: by Redis's own time to live, which no step may lose or shorten.

use std::time::SystemTime;

use feedgate_common::inboxes::{Advanced, Build, EdgeStep, EdgeStepped, InboxCounts, KEEP, Take};
use feedgate_common::{Cut, InboxKey, Millis, Progress, UserNo};
use feedgate_conformance::inboxes::InboxesExt as _;
use feedgate_engines::{Redis, RedisCluster};

use crate::world::{
    AUTHOR, BUCKETS, KEY, READER, begin, build, build_as, built, entry, finish, open, progress, push, server, step,
    take, take_in, takes_nothing, until,
};

const PLACE: &str = "{b001}:5:0";
const DAY: Millis = 86_400_000;

#[expect(clippy::disallowed_methods, reason = "Redis reads the same clock")]
fn now() -> Millis {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as Millis
}

/// -1 for a key that stays, -2 for none.
fn expires(redis: &Redis, key: &str) -> Millis {
    redis.cli(&["pexpiretime", key]).trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_keeps_the_time_and_a_touch_only_puts_it_off() {
    let redis = server();
    let store = open(&redis.url()).await;
    let later = now() + 30 * DAY;
    // The bucket gets its life: an epoch that was given before counts for nothing.
    progress(&*store, READER.bucket(BUCKETS)).await;
    begin(&*store, KEY).await;
    assert!((1..=now() + DAY / 24).contains(&expires(&redis, PLACE)), "nobody may come back for a build");
    store.discard(KEY).await.unwrap();
    let entries: Vec<_> = (1..=KEEP as u64 + 200).map(entry).collect();
    let epoch = build_as(&*store, |epoch| Build { until: later, ..built(KEY, epoch, entries.clone()) }).await;
    assert_eq!(expires(&redis, PLACE), later);
    push(&*store, &[READER]).await;
    take_in(&*store, epoch, 0, 1).await;
    let cut = Cut { progress: progress(&*store, READER.bucket(BUCKETS)).await, pull: 1 };
    let follow = EdgeStep {
        key: KEY,
        author: AUTHOR,
        generation: 11,
        on: true,
        expected: cut,
        adds: vec![entry(1)],
        floor: None,
    };
    assert!(matches!(store.step_edge(follow).await.unwrap(), EdgeStepped::Applied(_)));
    assert_eq!(expires(&redis, PLACE), later);
    let before = store.log(KEY).await.unwrap().unwrap();
    let one = take(epoch, 1);
    let many = Take { entries: vec![one.entries[1]; 100], ..one };
    store.take(many).await.unwrap();
    let after = store.log(KEY).await.unwrap().unwrap();
    assert!(after.entries[0].seq > before.entries[0].seq, "it is cut");
    assert_eq!(expires(&redis, PLACE), later, "and its time stays");

    for (until, wants) in [(later - 1, later), (0, later), (later + DAY, later + DAY), (later, later + DAY)] {
        store.touch(&[KEY], until).await.unwrap();
        assert_eq!(expires(&redis, PLACE), wants);
    }
    store.touch(&[KEY], Millis::MAX).await.unwrap();
    assert_eq!(expires(&redis, PLACE), Millis::MAX);
}

/// Redis takes a key without a time to live for one that is to stay, and so do we.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_built_to_stay_stays_and_what_is_missing_is_not_made_by_a_touch() {
    let redis = server();
    let store = open(&redis.url()).await;
    build(&*store, KEY, vec![]).await;
    assert_eq!(expires(&redis, PLACE), -1);
    let missing = InboxKey::main(UserNo(9));
    store.touch(&[KEY, missing], now() + DAY).await.unwrap();
    assert_eq!((expires(&redis, PLACE), expires(&redis, "{b001}:9:0")), (-1, -2));
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_what_has_expired_is_missing_is_not_counted_and_is_built_anew() {
    let redis = server();
    let store = open(&redis.url()).await;
    let soon = |epoch| Build { until: now() + 300, ..built(KEY, epoch, vec![entry(1)]) };
    let epoch = build_as(&*store, soon).await;
    let stays = InboxKey::main(UserNo(9));
    build(&*store, stays, vec![entry(1)]).await;
    until("it has expired", async || store.stand(KEY).await.unwrap().is_none()).await;
    assert_eq!(store.discard_expired(now(), 10).await.unwrap(), 0, "there is nothing left to do");
    assert_eq!(store.counts().await.unwrap(), InboxCounts { inboxes: 1, entries: 1 });
    takes_nothing(&*store, epoch, 0..=1).await;
    let pushed = store.advance(step(Progress::default(), &[READER, stays.reader])).await.unwrap();
    assert!(matches!(pushed, Advanced::Moved(grown) if grown.len() == 1));
    let again = begin(&*store, KEY).await;
    let past = Build { until: now() - 1, ..built(KEY, again, vec![entry(1)]) };
    assert!(store.finish_build(past).await.unwrap());
    assert_eq!(store.stand(KEY).await.unwrap(), None, "its time was past when it came");
    let anew = begin(&*store, KEY).await;
    assert!(anew > epoch && finish(&*store, KEY, anew, vec![]).await);
}

/// Keys of a cluster lie in slots of their own, and a touch names many.
#[tokio::test(flavor = "multi_thread")]
async fn a_touch_reaches_the_inboxes_of_every_bucket_of_a_cluster() {
    let cluster = RedisCluster::start();
    let store = open(&cluster.url()).await;
    let (before, after) = (now() + DAY, now() + 2 * DAY);
    let keys: Vec<_> = (1..=40).map(|reader| InboxKey::main(UserNo(reader))).collect();
    for key in &keys {
        build_as(&*store, |epoch| Build { until: before, ..built(*key, epoch, vec![entry(1)]) }).await;
    }
    store.touch(&keys, after).await.unwrap();
    for key in keys {
        let bucket = format!("{{b{:03}}}", key.reader.bucket(BUCKETS).0);
        let slot = cluster.nodes()[0].cli(&["cluster", "keyslot", &bucket]).trim().parse().unwrap();
        let holder = &cluster.nodes()[cluster.holder_of(slot)];
        assert_eq!(expires(holder, &format!("{bucket}:{}:0", key.reader.0)), after);
    }
    assert_eq!(store.counts().await.unwrap(), InboxCounts { inboxes: 40, entries: 40 });
}
