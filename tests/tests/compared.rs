//! The operator's look at inboxes: it finds what differs from the Archive for good, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::Arc;

use feedgate_common::archive::{Event, Publish, Write};
use feedgate_common::doctor::Check;
use feedgate_common::feed::Feeds;
use feedgate_common::{Archive, Body, InboxKey, Inboxes, ItemId, Millis, UserId};
use feedgate_embedded::Embedded;
use feedgate_tests::oracle::work_off_all;
use feedgate_tests::rules::Rules;
use feedgate_tests::town::now;

const BACKFILL: usize = 3;

/// Embedded stores, and the rules of a worker and a reader over them; nothing is done by itself.
struct World {
    archive: Arc<dyn Archive>,
    rules: Rules,
    reader: InboxKey,
    _stores: Embedded,
    _dir: tempfile::TempDir,
}

fn name(text: &str) -> UserId {
    text.parse().unwrap()
}

fn post(id: u64) -> Write {
    let body = Body::parse("1".to_owned()).unwrap();
    Write::Publish(Publish { id: Some(ItemId(id)), rank: Some(id as i64), ..Publish::new(name("ann"), body) })
}

impl World {
    /// Rea follows ann, of whom five items are there, and reads.
    async fn begin() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        let (archive, inboxes): (Arc<dyn Archive>, Arc<dyn Inboxes>) = (stores.archive.clone(), stores.inboxes.clone());
        let rules = Rules::new(Arc::new(Feeds::new(archive.clone(), inboxes, BACKFILL)));
        let reader = InboxKey::main(archive.intern(&[name("rea")]).await.unwrap()[0]);
        let world = Self { archive, rules, reader, _stores: stores, _dir: dir };
        world
            .write((1..=5).map(post).chain([Write::Follow { reader: name("rea"), author: name("ann") }]).collect())
            .await;
        work_off_all(&world.rules).await.unwrap();
        world.rules.changes.head(world.reader).await.unwrap();
        world
    }

    async fn write(&self, writes: Vec<Write>) {
        self.archive.write(writes, now()).await.unwrap().into_iter().for_each(|written| _ = written.unwrap());
    }

    async fn look(&self) -> Check {
        self.rules.changes.compare(None, async || {}).await.unwrap()
    }

    /// Says that all work is done, without doing it.
    async fn finish_without_work(&self) {
        let lines = self.archive.outstanding(None, Millis::MAX, 9).await.unwrap();
        let events: Vec<Event> = lines.into_iter().map(|line| line.event).collect();
        assert!(!events.is_empty() && self.archive.finish(&events).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_inbox_that_lacks_an_item_is_found_once_nobody_is_to_bring_it() {
    let world = World::begin().await;
    assert_eq!((world.look().await.looked_at, world.look().await.wrong), (1, 0), "three of five were brought");
    world.write(vec![post(6), post(7)]).await;
    assert_eq!(world.look().await.wrong, 0, "a worker is to bring them");
    world.finish_without_work().await;
    let found = world.look().await;
    assert_eq!(
        (found.wrong, &*found.findings),
        (1, &["the feed of rea: 2 items are missing, the newest 7".to_owned()][..])
    );
    world.rules.feeds.inboxes().discard(world.reader).await.unwrap();
    assert_eq!(world.look().await.looked_at, 0, "what is not there is built when its reader comes");
    world.rules.changes.head(world.reader).await.unwrap();
    assert_eq!(world.look().await.wrong, 0);
}

#[tokio::test]
async fn an_inbox_that_shows_what_it_is_not_to_show_is_found() {
    let world = World::begin().await;
    world.write(vec![Write::Unfollow { reader: name("rea"), author: name("ann") }]).await;
    assert_eq!(world.look().await.wrong, 0, "a worker is to take them out");
    world.finish_without_work().await;
    assert_eq!(world.look().await.findings, ["the feed of rea: 3 items are too many, the newest 5"]);
}

#[tokio::test]
async fn only_so_many_inboxes_are_compared() {
    let world = World::begin().await;
    for reader in ["bob", "cid", "dan"] {
        world.write(vec![Write::Follow { reader: name(reader), author: name("ann") }]).await;
        let user = world.archive.intern(&[name(reader)]).await.unwrap()[0];
        work_off_all(&world.rules).await.unwrap();
        world.rules.changes.head(InboxKey::main(user)).await.unwrap();
    }
    let looked_at = async |most| world.rules.changes.compare(most, async || {}).await.unwrap().looked_at;
    assert_eq!([looked_at(None).await, looked_at(Some(3)).await, looked_at(Some(9)).await], [4, 3, 4]);
}
