//! When a log is cut, and how much of it is read for that.

use feedgate_common::archive::Recipient;
use feedgate_common::inboxes::{Advance, Advanced, KEEP};
use feedgate_common::{DisplayKey, Entry, InboxKey, ItemId, Op, Progress, UserNo};
use feedgate_engines::Redis;

use crate::world::{KEY, READER, begin, build, built, entry, open, progress, push, record, step};

/// How long a log may be.
const LONGEST: usize = KEEP + 256;

/// How many entries more a log has that could not be cut, before it is tried again.
const AGAIN: usize = 64;

fn length(redis: &Redis) -> usize {
    redis.cli(&["llen", "{b001}:5:0"]).trim().parse::<usize>().unwrap() - 1
}

/// How often the server has cut a list.
fn cuts(redis: &Redis) -> usize {
    let stats = redis.cli(&["info", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_ltrim:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_log_is_cut_as_it_becomes_too_long_and_is_tried_again_after_more() {
    let redis = Redis::start();
    let store = open(&redis.url()).await;
    build(&*store, KEY, (1..=LONGEST as u64).map(entry).collect()).await;
    // The build has cut its placeholder off.
    assert_eq!((length(&redis), cuts(&redis)), (LONGEST, 1));
    push(&*store, &[READER]).await;
    assert_eq!((length(&redis), cuts(&redis)), (KEEP, 2));
    for _ in KEEP..LONGEST {
        push(&*store, &[READER]).await;
    }
    assert_eq!((length(&redis), cuts(&redis)), (LONGEST, 2));

    redis.cli(&["acl", "setuser", "default", "-ltrim"]);
    push(&*store, &[READER]).await;
    redis.cli(&["acl", "setuser", "default", "+ltrim"]);
    for more in 1..AGAIN {
        push(&*store, &[READER]).await;
        assert_eq!(length(&redis), LONGEST + 1 + more);
    }
    push(&*store, &[READER]).await;
    assert_eq!(length(&redis), KEEP);
    assert_eq!(store.log(KEY).await.unwrap().unwrap().entries.len(), KEEP);
}

/// The entry far above all others is deleted by one that is not among the first that are read.
#[tokio::test]
async fn i7_a_floor_above_all_that_was_read_is_looked_at_with_the_whole_log() {
    let redis = Redis::start();
    let store = open(&redis.url()).await;
    let high = DisplayKey { rank: 1_000_000, item: ItemId(1_000_000) };
    let of = |op| Entry { op, key: high, ..entry(3) };
    let log = |deleted: Option<usize>| {
        let mut log: Vec<_> = (1..=LONGEST as u64).map(entry).collect();
        log[2] = of(Op::Add);
        deleted.into_iter().for_each(|at| log[at] = of(Op::Delete));
        log
    };
    for (deleted, floor) in [(Some(LONGEST - 1), entry(257).key), (Some(300), entry(257).key), (None, high)] {
        build(&*store, KEY, log(deleted)).await;
        push(&*store, &[READER]).await;
        assert_eq!(store.log(KEY).await.unwrap().unwrap().floor, Some(floor), "{deleted:?}");
        store.discard(KEY).await.unwrap();
    }
}

#[tokio::test]
async fn a_step_of_kept_followers_is_stale_only_if_an_inbox_is_being_built() {
    let redis = Redis::start();
    let store = open(&redis.url()).await;
    let other = UserNo(9);
    let kept = |expected: Progress, counter| {
        let step = step(expected, &[READER, other]);
        let recipients = step.recipients.iter().map(|to| Recipient { counter, ..*to }).collect();
        Advance { kept: true, recipients, ..step }
    };
    build(&*store, KEY, vec![]).await;
    let moved = store.advance(kept(Progress::default(), 10)).await.unwrap();
    assert!(matches!(moved, Advanced::Moved(grown) if grown.len() == 1), "no inbox of the other one is there or built");
    assert_eq!(store.advance(kept(Progress::at(1), 9)).await.unwrap(), Advanced::Stale, "an edge changed since");
    let of_other = InboxKey { reader: other, ..KEY };
    let epoch = begin(&*store, of_other).await;
    assert_eq!(store.advance(kept(Progress::at(1), 10)).await.unwrap(), Advanced::Stale);
    assert_eq!(progress(&*store, READER.bucket(4)).await, Progress::at(1));
    assert!(store.finish_build(built(of_other, epoch, vec![])).await.unwrap());
    let moved = store.advance(kept(Progress::at(1), 10)).await.unwrap();
    assert!(matches!(moved, Advanced::Moved(grown) if grown.len() == 2));
    assert_eq!(record(2).key, store.log(of_other).await.unwrap().unwrap().entries[0].entry.key);
}
