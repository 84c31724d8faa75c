//! Tests of the embedded Archive that need its tables or private fields.

use feedgate_common::archive::{Audience, Below, Content, Graph, Names, Publish, Write, Writes, Written};
use feedgate_common::graph::Shield;
use feedgate_common::import::Import;
use feedgate_common::{Body, FeedId, InboxKey, ItemId, Millis, StoreError, UserId, UserNo};

use super::EmbeddedArchive;
use super::tables::{Counters, CountersRow, Expiries, FORMAT, Layout, LayoutRow, NOBODY, Retries};
use crate::database::Database;
use crate::request::Durability;
use crate::view::{Read, Tx};

#[tokio::test]
async fn a_store_keeps_the_layout_it_was_created_with() {
    let dir = tempfile::tempdir().unwrap();
    for buckets in [16, 64] {
        let db = Database::open(dir.path()).unwrap();
        let archive = EmbeddedArchive::open(db, buckets).await.unwrap();
        assert_eq!(archive.setup.buckets, 16);
    }
}

#[tokio::test]
async fn a_store_of_another_format_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    let set = |tx: &mut Tx<'_>| {
        tx.put::<Layout>(&(), &LayoutRow { format: FORMAT + 1, buckets: 16 });
        Ok(())
    };
    db.write(Durability::Synced, set).await.unwrap();
    let Err(refused) = EmbeddedArchive::open(db, 16).await else { panic!("it was opened") };
    let why = format!("is of format {}, and this version reads format {FORMAT} only", FORMAT + 1);
    assert!(refused.to_string().contains(&why), "{refused}");
}

/// An Archive with these counters; all others start at their beginning.
async fn with(counters: CountersRow) -> (tempfile::TempDir, EmbeddedArchive) {
    let dir = tempfile::tempdir().unwrap();
    let archive = EmbeddedArchive::open(Database::open(dir.path()).unwrap(), 16).await.unwrap();
    let set = move |tx: &mut Tx<'_>| {
        tx.put::<Counters>(&(), &counters);
        Ok(())
    };
    archive.db.write(Durability::Synced, set).await.unwrap();
    (dir, archive)
}

#[tokio::test]
async fn a_feed_for_which_no_number_is_left_gets_none_and_changes_nothing() {
    let (_dir, archive) = with(CountersRow { feeds: u16::MAX - 1, ..CountersRow::default() }).await;
    let refused = archive.intern_feeds(&["likes".into(), "stories".into()]).await.unwrap_err();
    assert!(refused.to_string().contains("65,535"), "{refused}");
    assert_eq!(archive.intern_feeds(&["stories".into()]).await.unwrap(), [FeedId(u16::MAX)]);
    archive.intern_feeds(&["likes".into()]).await.unwrap_err();
    assert_eq!(archive.intern_feeds(&["stories".into()]).await.unwrap(), [FeedId(u16::MAX)], "who has one keeps it");
    assert_eq!(archive.feeds().await.unwrap().len(), 1 << 16);
}

#[tokio::test]
async fn the_number_that_stands_for_nobody_is_given_to_no_user() {
    let (_dir, archive) = with(CountersRow { users: NOBODY.0 - 2, ..CountersRow::default() }).await;
    let [ann, ben] = ["ann", "ben"].map(|name| name.parse().unwrap());
    assert_eq!(archive.intern(&[ann]).await.unwrap(), [UserNo(NOBODY.0 - 1)]);
    let refused = archive.intern(&[ben]).await.unwrap_err();
    assert!(refused.to_string().contains("4,294,967,294"), "{refused}");
}

#[tokio::test]
async fn an_imported_item_that_was_deleted_is_shown_in_no_feed() {
    let (_dir, archive) = with(CountersRow::default()).await;
    let likes = archive.intern_feeds(&["likes".into()]).await.unwrap()[0];
    let rea: UserId = "rea".parse().unwrap();
    let then = |feed, deleted| {
        let publish = Publish::new("ann".parse().unwrap(), Body::parse("1".to_owned()).unwrap());
        let publish = Publish { feed, audience: Audience::Users(vec![rea.clone()]), ..publish };
        Write::Import(Import::Item { publish, version: 1, deleted })
    };
    let lines = vec![then(likes, true), then(FeedId::MAIN, true), then(likes, false), then(FeedId::MAIN, false)];
    let written = archive.write(lines, 1).await.unwrap();
    let items = written.into_iter().map(|line| match line {
        Ok(Written::Published { id, .. }) => id,
        other => panic!("history is taken in, not {other:?}"),
    });
    let items: Vec<ItemId> = items.collect();
    let reader = archive.intern(&[rea]).await.unwrap()[0];
    for (feed, living) in [(likes, items[2]), (FeedId::MAIN, items[3])] {
        let page = archive.feed_below(InboxKey { reader, feed }, Below::newest(10), 10).await.unwrap();
        assert_eq!(page.iter().map(|add| add.key.item).collect::<Vec<_>>(), [living], "{feed:?}");
    }
}

#[tokio::test]
async fn shields_that_went_up_at_one_time_are_all_listed() {
    let (_dir, archive) = with(CountersRow::default()).await;
    let muted = async |other: &str| {
        let (user, other) = ("ann".parse().unwrap(), other.parse().unwrap());
        let line = Import::Shield { user, other, shield: Shield::Mute, since: 7 };
        archive.write(vec![Write::Import(line)], 1).await.unwrap().remove(0).unwrap();
    };
    muted("bob").await;
    // The place in the list has the last 22 bits of this counter.
    let leap = |tx: &mut Tx<'_>| {
        let counters = tx.get::<Counters>(&())?.unwrap_or_default();
        tx.put::<Counters>(&(), &CountersRow { generation: counters.generation + (1 << 22) - 1, ..counters });
        Ok(())
    };
    archive.db.write(Durability::Synced, leap).await.unwrap();
    muted("cid").await;
    let ann = archive.intern(&["ann".parse().unwrap()]).await.unwrap()[0];
    let listed = archive.shielded(ann, Shield::Mute, None, 9).await.unwrap();
    assert_eq!(listed.iter().map(|line| line.user.as_str()).collect::<Vec<_>>(), ["cid", "bob"]);
}

#[tokio::test]
async fn keys_that_a_transaction_that_failed_has_removed_are_removed_by_a_later_one() {
    const LATER: Millis = 1_000_000_000;
    let (_dir, archive) = with(CountersRow::default()).await;
    for now in [1, 2] {
        let publish = Publish::new("ann".parse().unwrap(), Body::parse("1".to_owned()).unwrap());
        let publish = Publish { idempotency_key: Some(compact_str::format_compact!("key-{now}")), ..publish };
        archive.write(vec![Write::Publish(publish)], now).await.unwrap().remove(0).unwrap();
    }
    let sweep = archive.sweep.clone();
    let fails = move |tx: &mut Tx<'_>| {
        sweep.run(tx, LATER)?;
        Err::<(), _>(StoreError::unavailable("the disk is full"))
    };
    archive.db.write(Durability::Synced, fails).await.unwrap_err();
    archive.db.say_reopened();
    let follow = Write::Follow { reader: "bob".parse().unwrap(), author: "ann".parse().unwrap() };
    archive.write(vec![follow], LATER).await.unwrap().remove(0).unwrap();
    let view = archive.db.view().unwrap();
    assert_eq!((view.scan::<Retries>(..).count(), view.scan::<Expiries>(..).count()), (0, 0));
}
