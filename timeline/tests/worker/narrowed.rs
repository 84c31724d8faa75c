//! Items that are narrowed to an audience: which inboxes push brings them into.

use std::collections::BTreeSet;

use feedgate_common::archive::{Audience, Publish, Write};
use feedgate_common::audience::Narrowed;
use feedgate_common::change::Class;
use feedgate_common::erase::{Stage, State};
use feedgate_common::feed::Eraser;
use feedgate_common::{ItemId, Op};

use crate::town::{NOW, STEP_MAX, Town};

impl Town {
    /// To those of these readers who follow, and to nobody else.
    pub(crate) async fn publish_narrowed(&self, author: usize, id: u64, readers: &[usize]) {
        let readers = readers.iter().map(|reader| self.name(*reader)).collect();
        let audience = Audience::Narrowed(Narrowed::to(readers));
        self.write(Write::Publish(Publish { audience, ..self.item(author, id) })).await;
    }
}

/// What each reader has got live, between items for all, and who has got it.
async fn only_the_audience_gets_it(town: &Town, users: usize, audience: &[usize]) {
    town.publish(0, 1).await;
    town.publish_narrowed(0, 2, audience).await;
    town.publish_narrowed(0, 3, &[]).await;
    town.publish(0, 4).await;
    town.edit(2).await;
    town.deliver().await;
    for reader in 1..users {
        let wants = if audience.contains(&reader) { BTreeSet::from([1, 2, 4]) } else { BTreeSet::from([1, 4]) };
        assert_eq!(town.shown(reader).await, wants, "reader {reader}");
        let of_it = town.entries(reader).await.into_iter().filter(|entry| [2, 3].contains(&entry.key.item.0));
        let ops: Vec<Op> = of_it.map(|entry| entry.op).collect();
        let wants = if audience.contains(&reader) { vec![Op::Add, Op::Update] } else { vec![] };
        assert_eq!(ops, wants, "the log of reader {reader} says nothing else of it");
    }
    town.delete(2).await;
    town.deliver().await;
    for reader in 1..users {
        assert_eq!(town.shown(reader).await, BTreeSet::from([1, 4]), "reader {reader}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s9_a_round_of_steps_brings_a_narrowed_item_to_its_audience() {
    for audience in [1, 0] {
        let dir = tempfile::tempdir().unwrap();
        let town = Town::with_followers(dir.path(), STEP_MAX).await;
        only_the_audience_gets_it(&town, STEP_MAX, &[audience]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s9_each_bucket_alone_brings_a_narrowed_item_to_its_audience() {
    let dir = tempfile::tempdir().unwrap();
    let users = 8 * STEP_MAX;
    let town = Town::with_followers(dir.path(), users).await;
    let audience: Vec<usize> = (1..users).filter(|reader| reader % 3 != 0).collect();
    only_the_audience_gets_it(&town, users, &audience).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s9_a_narrowed_item_of_an_author_who_is_pulled_is_pushed_to_its_audience() {
    let dir = tempfile::tempdir().unwrap();
    let users = 4 * STEP_MAX;
    let town = Town::with_followers(dir.path(), users).await;
    town.classify(0, Class::Pull).await;
    only_the_audience_gets_it(&town, users, &[1, 2, 5]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s9_an_unfollow_takes_a_narrowed_item_away_and_a_follow_brings_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 3).await;
    town.publish_narrowed(0, 1, &[1]).await;
    town.deliver().await;
    for (follows, wants) in [(false, BTreeSet::new()), (true, BTreeSet::from([1]))] {
        for reader in [1, 2] {
            if follows { town.follow(reader, 0).await } else { town.unfollow(reader, 0).await }
        }
        town.deliver().await;
        assert_eq!(town.shown(1).await, wants);
        assert_eq!(town.shown(2).await, BTreeSet::new());
    }
}

/// Readers drop the item as soon as its delete comes, and not only when their follow ends.
#[tokio::test(flavor = "multi_thread")]
async fn s9_the_delete_of_a_narrowed_item_of_an_erased_author_reaches_its_audience() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 3).await;
    town.publish_narrowed(0, 1, &[1]).await;
    town.deliver().await;
    let archive = &town.stores.archive;
    let eraser = Eraser::new(archive.clone(), town.stores.inboxes.clone());
    let mut erasure = archive.begin_erasure(town.no(0), NOW).await.unwrap();
    while erasure.state.stage == Stage::Items {
        eraser.step(&erasure, NOW).await.unwrap();
        erasure = archive.erasure(erasure.id).await.unwrap().unwrap();
    }
    // No worker goes on with it.
    let over = State { finished_at: Some(NOW), ..erasure.state.clone() };
    assert!(archive.move_erasure(erasure.id, &erasure.state, &over).await.unwrap());
    town.deliver().await;
    assert_eq!(town.entries(1).await.last().map(|entry| (entry.op, entry.key.item)), Some((Op::Delete, ItemId(1))));
}
