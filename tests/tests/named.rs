//! What a named feed shows: only so many of its newest items, and none that is too old.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use feedgate_common::archive::{Publish, Write};
use feedgate_common::feed::{Change, DEFAULT_BACKFILL};
use feedgate_common::inboxes::KEEP;
use feedgate_common::named::{NamedFeed, NamedFeeds};
use feedgate_common::{Body, FeedId, InboxKey, ItemId, Millis, UserId};
use feedgate_tests::town::{Town, now};

const CAP: usize = 10;
const HOUR: Millis = 3600 * 1000;

/// A town with the feed of likes, and a reader of it who follows its only author.
struct World {
    town: Town,
    likes: InboxKey,
    _dir: tempfile::TempDir,
}

fn author() -> UserId {
    "ann".parse().unwrap()
}

fn body(text: &str) -> Body {
    Body::parse(format!("{text:?}")).unwrap()
}

fn like(id: u64, published_at: Millis) -> Write {
    let feed = FeedId(1);
    let new = Publish::new(author(), body("like"));
    Write::Publish(Publish {
        id: Some(ItemId(id)),
        published_at: Some(published_at),
        rank: Some(id as i64),
        feed,
        ..new
    })
}

fn post(id: u64) -> Write {
    Write::Publish(Publish { id: Some(ItemId(id)), ..Publish::new(author(), body("post")) })
}

impl World {
    async fn with(cap: usize, ttl: Option<Millis>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let feed =
            NamedFeed { id: FeedId(1), name: "likes".into(), kinds: vec!["like".into()], ranked: false, cap, ttl };
        let named = NamedFeeds::new(vec![feed]).unwrap();
        let town = Town::open_with(dir.path(), 2, DEFAULT_BACKFILL, named).unwrap();
        assert_eq!(town.stores.archive.intern_feeds(&["likes".into()]).await.unwrap(), [FeedId(1)]);
        let reader: UserId = "rea".parse().unwrap();
        let main = town.key(&reader).await.unwrap();
        town.write(vec![Write::Follow { reader, author: author() }]).await.unwrap();
        let likes = InboxKey { feed: FeedId(1), ..main };
        for key in [main, likes] {
            town.changes.head(key).await.unwrap();
        }
        Self { town, likes, _dir: dir }
    }

    async fn write(&self, writes: Vec<Write>) {
        self.town.write(writes).await.unwrap();
        self.town.settle().await.unwrap();
    }

    /// Every item that the pages of a feed show, and how many each shows.
    async fn pages(&self, key: InboxKey, limit: usize) -> (Vec<u64>, Vec<usize>) {
        let (mut items, mut sizes, mut before) = (vec![], vec![], None);
        loop {
            let page = self.town.pages.page(key, before, limit).await.unwrap();
            sizes.push(page.items.len());
            items.extend(page.items.iter().map(|item| item.id.0));
            before = page.next;
            if before.is_none() {
                return (items, sizes);
            }
        }
    }
}

fn down(from: u64, to: u64) -> Vec<u64> {
    (to..=from).rev().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_cap_ends_a_feed_behind_its_newest_items_whether_the_log_holds_them_or_not() {
    let world = World::with(CAP, None).await;
    world.write((1..=30).map(|id| like(id, 1)).chain((101..=140).map(post)).collect()).await;
    assert_eq!(world.pages(world.likes, 4).await, (down(30, 21), vec![4, 4, 2]));
    let main = InboxKey::main(world.likes.reader);
    assert_eq!(world.pages(main, 40).await, (down(140, 101), vec![40]), "the main feed has no end but its own");

    // The newest are deleted: older ones come up.
    world.write([30, 28].map(|item| Write::Delete { item: ItemId(item), if_version: None }).to_vec()).await;
    let mut left = down(29, 19);
    left.retain(|id| *id != 28);
    assert_eq!(world.pages(world.likes, 4).await, (left.clone(), vec![4, 4, 2]));

    // So many changes that the log has let go of every add.
    for _ in 0..3 {
        let edit = |_| Write::Edit {
            item: ItemId(29),
            body: Some(body("again")),
            rank: None,
            mentions: None,
            if_version: None,
        };
        world.write((0..KEEP).map(edit).collect()).await;
    }
    let log = world.town.changes.log(world.likes).await.unwrap();
    assert!(log.floor.is_some_and(|floor| floor.item == ItemId(29)), "{:?}", log.floor);
    assert_eq!(world.pages(world.likes, 4).await, (left.clone(), vec![4, 4, 2]), "from the Archive");

    // Then the feed is read as after a long sleep.
    world.town.stores.inboxes.discard(world.likes).await.unwrap();
    assert_eq!(world.pages(world.likes, 4).await, (left, vec![4, 4, 2]));
    assert_eq!(world.town.changes.log(world.likes).await.unwrap().entries.len(), CAP, "no more than it shows");
    world.town.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i8_what_is_too_old_for_its_feed_is_skipped_without_a_short_page_and_told_as_deleted() {
    let world = World::with(KEEP, Some(24 * HOUR)).await;
    let published = |id| now() - if id % 3 == 0 { 25 * HOUR } else { HOUR };
    world.write((1..=30).map(|id| like(id, published(id))).collect()).await;
    let mut shown = down(30, 1);
    shown.retain(|id| id % 3 != 0);
    assert_eq!(world.pages(world.likes, 6).await, (shown, vec![6, 6, 6, 2]));

    let log = world.town.changes.log(world.likes).await.unwrap();
    let changes =
        world.town.changes.hydrate(world.likes, log.entries.iter().map(|numbered| &numbered.entry)).await.unwrap();
    let gone = changes.iter().filter_map(|change| match change {
        Change::Delete { item_id } => Some(item_id.0),
        _ => None,
    });
    assert_eq!(gone.collect::<Vec<_>>(), (1..=10).map(|n| 3 * n).collect::<Vec<_>>());
    world.town.close().await.unwrap();
}
