//! A follow that shows more items than one step brings, for a reader who has an inbox already: a follow that was
//! imported with an old date, or a follow whose step comes late.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::Arc;

use feedgate_common::archive::{Publish, Write};
use feedgate_common::doorbell::Growth;
use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds, living};
use feedgate_common::import::{Import, Place};
use feedgate_common::inboxes::KEEP;
use feedgate_common::{Body, InboxKey, ItemId, UserId};
use feedgate_embedded::Embedded;
use feedgate_tests::rules::Rules;
use feedgate_tests::town::Town;
use feedgate_timeline::fanout::Left;

/// How many items are imported: more than one step may bring to a log.
const ITEMS: u64 = 2 * KEEP as u64 + 500;

fn line(author: &UserId, id: u64) -> Write {
    let body = Body::parse(id.to_string()).unwrap();
    let publish = Publish { id: Some(ItemId(id)), published_at: Some(id as i64), ..Publish::new(author.clone(), body) };
    Write::Import(Import::Item { publish, version: 1, deleted: false })
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_a_follow_imported_from_far_back_leaves_the_inbox_to_its_rebuild_and_every_page_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2, DEFAULT_BACKFILL).unwrap();
    let (reader, author): (UserId, UserId) = ("rea".parse().unwrap(), "ann".parse().unwrap());
    let key = town.key(&reader).await.unwrap();
    let before = town.changes.head(key).await.unwrap();
    let follow = Import::Follow { reader, author: author.clone(), since: 1, from: Place::Start };
    let lines = (1..=ITEMS).map(|id| line(&author, id)).chain([Write::Import(follow)]);
    town.write(lines.collect()).await.unwrap();
    town.settle().await.unwrap();
    assert_eq!(town.stores.inboxes.heads(&[key]).await.unwrap(), [None], "no log holds so much");

    let log = town.changes.log(key).await.unwrap();
    assert!(log.head.epoch > before.epoch, "a device starts over");
    assert_eq!(living(&log.entries).len(), KEEP);
    let (mut next, mut wanted) = (None, (1..=ITEMS).rev());
    loop {
        let page = town.pages.page(key, next, 500).await.unwrap();
        assert!(page.items.iter().map(|item| item.id.0).eq(wanted.by_ref().take(page.items.len())), "I7");
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(wanted.next(), None, "I7: to the last");
    town.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_a_follow_that_is_served_late_wakes_its_reader_and_leaves_what_was_built_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), 2).unwrap();
    let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL);
    let rules = Rules::new(Arc::new(feeds));
    let names: [UserId; 2] = ["rea", "ann"].map(|name| name.parse().unwrap());
    let [reader, author] = stores.archive.intern(&names).await.unwrap()[..] else { panic!("two") };
    let key = InboxKey::main(reader);
    let before = rules.changes.head(key).await.unwrap();
    let [rea, ann] = names;
    stores.archive.write(vec![Write::Follow { reader: rea, author: ann.clone() }], 1).await.unwrap();
    let post = |_| Write::Publish(Publish::new(ann.clone(), Body::parse("1".to_owned()).unwrap()));
    stores.archive.write((0..ITEMS).map(post).collect(), 1).await.unwrap();
    while !matches!(rules.fan_out.advance_all(author).await.unwrap().left, Left::Nothing(_)) {}

    let woken = || async { rules.fan_out.step_edge(reader, author).await.unwrap().1 };
    assert_eq!(woken().await, [Growth::of_one(key, author, before)], "who is online has to start over");
    assert_eq!(woken().await, [], "there is no inbox");
    let built = rules.changes.head(key).await.unwrap();
    assert_eq!(woken().await, [], "it was built with all of it");
    assert_eq!(rules.changes.head(key).await.unwrap(), built);
}
