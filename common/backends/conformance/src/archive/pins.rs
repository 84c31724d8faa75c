//! Tests of pins: what a user shows before all other items on the profile (S13).

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Write, Written};
use feedgate_common::pins::{NotPinned, PINS_MAX, Pin};
use feedgate_common::{FeedId, ItemId, UserNo};

use super::erasures::erase;
use super::{NOW, accept, delete, move_to, number, post, to_users, write};

async fn posts(archive: &dyn Archive, author: &str, count: usize) -> Vec<ItemId> {
    let mut items = vec![];
    for _ in 0..count {
        items.push(accept(archive, post(author, "x"), NOW).await.0);
    }
    items
}

/// The ids of what a user has pinned.
async fn pinned(archive: &dyn Archive, user: UserNo) -> Vec<ItemId> {
    archive.pins(user).await.unwrap().into_iter().map(|pin| pin.item).collect()
}

pub(super) async fn s13_what_is_pinned_last_stands_first(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let items = posts(archive, "ann", PINS_MAX + 1).await;
    let (ann, bob) = (number(archive, "ann").await, number(archive, "bob").await);
    assert_eq!(archive.pins(ann).await.unwrap(), []);
    assert!(!archive.unpin(ann, items[0]).await.unwrap(), "nothing is pinned");
    for item in &items[..3] {
        assert_eq!(archive.pin(ann, *item).await.unwrap(), Ok(true));
    }
    let [a, b, c] = items[..3] else { unreachable!() };
    assert_eq!(archive.pin(ann, a).await.unwrap(), Ok(false), "it is pinned");
    assert_eq!(pinned(archive, ann).await, [c, b, a], "and keeps its place");
    write(archive, move_to(b, 5)).await.unwrap();
    assert_eq!(pinned(archive, ann).await, [c, b, a], "whatever its rank");
    assert!(archive.unpin(ann, b).await.unwrap() && !archive.unpin(ann, b).await.unwrap());
    assert!(!archive.unpin(bob, a).await.unwrap(), "each user unpins what is pinned there");
    assert_eq!((pinned(archive, ann).await, pinned(archive, bob).await), (vec![c, a], vec![]));
    assert_eq!(archive.pin(ann, b).await.unwrap(), Ok(true));
    assert_eq!(pinned(archive, ann).await, [b, c, a]);
    for item in [a, b, c] {
        assert!(archive.unpin(ann, item).await.unwrap());
    }
    assert_eq!(pinned(archive, ann).await, []);
    assert_eq!(archive.pin(ann, a).await.unwrap(), Ok(true));
}

pub(super) async fn s13_a_user_pins_a_few_items_of_the_own_outbox_that_live(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let items = posts(archive, "ann", PINS_MAX + 2).await;
    let of_bob = posts(archive, "bob", 1).await[0];
    let letter = match write(archive, Write::Publish(to_users("ann", "x", &["bob"]))).await {
        Ok(Written::Published { id, .. }) => id,
        other => panic!("a new item is accepted, not {other:?}"),
    };
    let ann = number(archive, "ann").await;
    let (full, more) = items.split_at(PINS_MAX);
    for item in full {
        assert_eq!(archive.pin(ann, *item).await.unwrap(), Ok(true));
    }
    for (item, why) in [
        (ItemId(7), NotPinned::NoSuchItem),
        (of_bob, NotPinned::OfAnother),
        (letter, NotPinned::Direct),
        (more[0], NotPinned::TooMany),
    ] {
        assert_eq!(archive.pin(ann, item).await.unwrap(), Err(why));
    }
    let mut wants: Vec<ItemId> = full.iter().rev().copied().collect();
    assert_eq!(pinned(archive, ann).await, wants, "what is refused changes nothing");
    write(archive, delete(full[1])).await.unwrap();
    assert_eq!(archive.pin(ann, full[1]).await.unwrap(), Err(NotPinned::NoSuchItem));
    assert_eq!(archive.pin(ann, more[0]).await.unwrap(), Ok(true), "a deleted item makes room");
    wants.retain(|item| *item != full[1]);
    wants.insert(0, more[0]);
    assert_eq!(pinned(archive, ann).await, wants);
    assert_eq!(archive.pin(ann, more[1]).await.unwrap(), Err(NotPinned::TooMany));
}

pub(super) async fn s13_a_pin_is_of_the_feed_of_its_item_and_outlives_a_restart(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("pins").await;
    let likes = archive.intern_feeds(&["likes".into()]).await.unwrap()[0];
    let (item, _) = accept(&*archive, post("ann", "x"), NOW).await;
    let (like, _) = accept(&*archive, Publish { feed: likes, ..post("ann", "x") }, NOW).await;
    let ann = number(&*archive, "ann").await;
    for item in [item, like] {
        archive.pin(ann, item).await.unwrap().unwrap();
    }
    let wants = [Pin { feed: likes, item: like }, Pin { feed: FeedId::MAIN, item }];
    assert_eq!(archive.pins(ann).await.unwrap(), wants);
    drop(archive);
    assert_eq!(open("pins").await.pins(ann).await.unwrap(), wants);
}

pub(super) async fn s13_of_pins_that_race_no_more_than_a_few_stand(archive: Arc<dyn Archive>) {
    let items = posts(&*archive, "ann", 4 * PINS_MAX).await;
    let ann = number(&*archive, "ann").await;
    let mut tasks = vec![];
    for some in items.chunks(4) {
        let (archive, some) = (archive.clone(), some.to_vec());
        tasks.push(tokio::spawn(async move {
            for item in some {
                if archive.pin(ann, item).await.expect("the archive works").is_ok() && item.0 % 3 == 0 {
                    assert!(archive.unpin(ann, item).await.expect("the archive works"), "it was pinned");
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut pinned = pinned(&*archive, ann).await;
    let count = pinned.len();
    pinned.sort_unstable();
    pinned.dedup();
    assert!(count == pinned.len() && (1..=PINS_MAX).contains(&count), "{count} pins");
}

pub(super) async fn s13_an_erasure_takes_pins_along(archive: Arc<dyn Archive>) {
    let of_ann = posts(&*archive, "ann", 2).await;
    let of_bob = posts(&*archive, "bob", 1).await;
    let (ann, bob) = (number(&*archive, "ann").await, number(&*archive, "bob").await);
    archive.pin(ann, of_ann[0]).await.unwrap().unwrap();
    archive.pin(bob, of_bob[0]).await.unwrap().unwrap();
    erase(&archive, ann).await;
    assert_eq!(archive.pins(ann).await.unwrap(), []);
    assert_eq!(pinned(&*archive, bob).await, of_bob);
}
