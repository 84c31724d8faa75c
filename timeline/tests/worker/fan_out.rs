//! What a worker brings to inboxes, on real embedded stores.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::town::{BACKFILL, NOW, Town, settings, sweeping};
use feedgate_common::archive::{Publish, Write, Written};
use feedgate_common::inboxes::MARKS_MAX;
use feedgate_common::jobs::Job;
use feedgate_common::{Entry, Jobs, Op};
use feedgate_embedded::EmbeddedJobs;

/// (what, item) of each entry.
fn told(entries: &[Entry]) -> Vec<(Op, u64)> {
    entries.iter().map(|entry| (entry.op, entry.key.item.0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_reaches_every_followers_inbox_and_nobody_elses() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 12).await;
    for reader in 0..12 {
        town.visit(reader).await;
    }
    // Followers in every bucket, more of them than fit in a step.
    for reader in 1..=9 {
        town.follow(reader, 0).await;
    }
    town.deliver().await;
    let worker = town.worker();
    town.publish(0, 100).await;
    town.publish(0, 101).await;
    town.drained().await;
    for reader in 0..12 {
        let wants: &[u64] = if (1..=9).contains(&reader) { &[100, 101] } else { &[] };
        assert_eq!(town.shown(reader).await, BTreeSet::from_iter(wants.iter().copied()), "reader {reader}");
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i11_a_delete_follows_its_add() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 8).await;
    // All of it accepted before anybody works, then worked off by two at once.
    town.publish(0, 100).await;
    town.publish(0, 101).await;
    town.edit(100).await;
    town.delete(100).await;
    let workers = [town.worker(), town.worker()];
    town.drained().await;
    for reader in 1..8 {
        let entries = town.entries(reader).await;
        let pushed = &told(&entries)[entries.len() - 4..];
        assert_eq!(pushed, [(Op::Add, 100), (Op::Add, 101), (Op::Update, 100), (Op::Delete, 100)], "reader {reader}");
        assert_eq!(town.shown(reader).await, BTreeSet::from([101]));
    }
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_a_follow_brings_the_newest_items_and_an_unfollow_forgets_them() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 3).await;
    town.visit(1).await;
    for id in 100..110 {
        town.publish(0, id).await;
    }
    town.delete(108).await;
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::new(), "nobody followed yet");

    town.follow(1, 0).await;
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([106, 107, 109]), "the newest {BACKFILL} that live");

    town.publish(0, 110).await;
    town.follow(1, 2).await;
    town.publish(2, 200).await;
    town.deliver().await;
    town.unfollow(1, 0).await;
    town.publish(0, 111).await;
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([200]), "the other author stays");
    let entries = town.entries(1).await;
    assert_eq!(entries.iter().filter(|e| e.op == Op::Forget && e.author == town.no(0)).count(), 2);
    assert!(entries.iter().all(|e| e.key.item.0 != 111), "nothing of an author comes behind the forget");
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_redelivery_adds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 10).await;
    for reader in 1..10 {
        town.visit(reader).await;
        town.follow(reader, 0).await;
    }
    town.deliver().await;
    let before = town.entries(1).await.len();
    // Two queues that know nothing of each other deliver the same work to two workers at once.
    let queues: [Arc<dyn Jobs>; 2] = [Arc::new(EmbeddedJobs::default()), Arc::new(EmbeddedJobs::default())];
    let work = [Job::FanOut { author: town.no(0) }, Job::Edge { reader: town.no(1), author: town.no(0) }];
    let workers: Vec<_> =
        queues.iter().map(|jobs| town.worker_on(jobs.clone(), town.stores.doorbell.clone(), settings())).collect();
    for id in 100..130 {
        town.publish(0, id).await;
        for queue in &queues {
            queue.put(&work).await.unwrap();
        }
    }
    town.finished().await;
    for worker in workers {
        worker.stop().await;
    }
    // And once more after everything was finished.
    town.stores.jobs.put(&work).await.unwrap();
    town.deliver().await;

    let wants: Vec<(Op, u64)> = (100..130).map(|id| (Op::Add, id)).collect();
    for reader in 1..10 {
        assert_eq!(told(&town.entries(reader).await)[before..], wants, "reader {reader}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_retry_with_the_same_idempotency_key_gets_the_same_item_and_one_delivery() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2).await;
    town.visit(1).await;
    town.follow(1, 0).await;
    let request = Publish { id: None, idempotency_key: Some("order-7".into()), ..town.item(0, 0) };
    let first = town.write(Write::Publish(request.clone())).await;
    town.deliver().await;
    let retry = town.write(Write::Publish(request.clone())).await;
    town.deliver().await;
    let (Written::Published { id, fresh: true, .. }, Written::Published { id: again, fresh: false, .. }) =
        (first, retry)
    else {
        panic!("an item, and the same item again")
    };
    assert_eq!(again, id);
    assert_eq!(town.shown(1).await, BTreeSet::from([id.0]));
    drop(town);

    // Also after a restart.
    let town = Town::open(dir.path(), 2).await;
    let late = town.write(Write::Publish(request)).await;
    assert!(matches!(late, Written::Published { id: late, fresh: false, .. } if late == id), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i15_merged_follow_operations_end_like_unmerged_ones() {
    let operations = [true, false, true, true, false, true, false, false, true];
    let mut ends = vec![];
    for merged in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let town = Town::open(dir.path(), 3).await;
        town.visit(1).await;
        for (n, on) in operations.into_iter().enumerate() {
            town.publish(0, 100 + n as u64).await;
            if on {
                town.follow(1, 0).await
            } else {
                town.unfollow(1, 0).await
            }
            if !merged {
                town.deliver().await;
            }
        }
        if merged {
            assert_eq!(town.pending().await, 2, "one fan-out and one edge wait");
        }
        town.deliver().await;
        ends.push(town.shown(1).await);
    }
    assert_eq!(ends[0], BTreeSet::from([106, 107, 108]));
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_and_never_relayed_is_found_by_the_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2).await;
    town.visit(1).await;
    town.follow(1, 0).await;
    // As if the process had died between commit and relay.
    town.stores.archive.write(vec![Write::Publish(town.item(0, 100))], NOW).await.unwrap();
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100]), "found at the start");

    let worker = town.worker_on(town.stores.jobs.clone(), town.stores.doorbell.clone(), sweeping());
    town.stores.archive.write(vec![Write::Publish(town.item(0, 101))], NOW).await.unwrap();
    town.drained().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101]), "found when it was overdue");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_events_than_a_sweep_relays_at_a_time_are_all_found() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 1).await;
    let name = |n: u32| format!("reader-{n}").parse().unwrap();
    let follows = (0..2500).map(|n| Write::Follow { reader: name(n), author: town.name(0) }).collect();
    town.stores.archive.write(follows, NOW).await.unwrap();
    let worker = town.worker_on(town.stores.jobs.clone(), town.stores.doorbell.clone(), sweeping());
    town.finished().await;
    assert_eq!(town.stores.archive.counts().await.unwrap().events, 0);
    worker.stop().await;
}

/// Each follow step leaves a mark in the inbox. When there are too many, the inbox is built anew.
#[tokio::test(flavor = "multi_thread")]
async fn i4_a_reader_who_follows_more_than_an_inbox_remembers_gets_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), MARKS_MAX + 3).await;
    let authors = 1..MARKS_MAX + 3;
    town.visit(0).await;
    let before = town.log(0).await.head.epoch;
    let follow = |author| Write::Follow { reader: town.name(0), author: town.name(author) };
    town.stores.archive.write(authors.map(follow).collect(), NOW).await.unwrap();
    town.deliver().await;
    assert_eq!(town.stores.inboxes.stand(town.key(0)).await.unwrap(), None, "it is left to a rebuild");
    for (author, id) in [(1, 100), (MARKS_MAX + 2, 101)] {
        town.publish(author, id).await;
    }
    assert_eq!(town.shown(0).await, BTreeSet::from([100, 101]));
    assert!(town.log(0).await.head.epoch > before, "whoever is online is told to start over");
}
