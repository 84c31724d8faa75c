//! A follow that was imported from far back, for a reader who has an inbox already.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use feedgate_common::archive::{Publish, Write};
use feedgate_common::feed::{DEFAULT_BACKFILL, living};
use feedgate_common::import::{Import, Place};
use feedgate_common::inboxes::KEEP;
use feedgate_common::{Body, ItemId, UserId};
use feedgate_tests::town::Town;

/// More than a step may bring to a log.
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
    let before = town.feeds.head(key).await.unwrap();
    let follow = Import::Follow { reader, author: author.clone(), since: 1, from: Place::Start };
    let lines = (1..=ITEMS).map(|id| line(&author, id)).chain([Write::Import(follow)]);
    town.write(lines.collect()).await.unwrap();
    town.settle().await.unwrap();
    assert_eq!(town.stores.inboxes.heads(&[key]).await.unwrap(), [None], "no log holds so much");

    let log = town.feeds.log(key).await.unwrap();
    assert!(log.head.epoch > before.epoch, "a device starts over");
    assert_eq!(living(&log.entries).len(), KEEP);
    let (mut next, mut wanted) = (None, (1..=ITEMS).rev());
    loop {
        let page = town.feeds.page(key, next, 500).await.unwrap();
        assert!(page.items.iter().map(|item| item.id.0).eq(wanted.by_ref().take(page.items.len())), "I7");
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(wanted.next(), None, "I7: to the last");
    town.close().await.unwrap();
}
