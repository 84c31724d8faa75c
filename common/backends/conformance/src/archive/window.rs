//! Which part of an outbox an edge shows, and what a rebuild has to be told.

use std::sync::Arc;

use feedgate_common::archive::{Archive, EDGE_ADDS_MAX, Publish, Write};
use feedgate_common::{Cut, FeedId, InboxKey, ItemId, Progress, UserNo};

use super::{NOW, accept, change, delete, follow, post, write};

pub(super) async fn a_follow_late_reads_only_its_own_window(archive: Arc<dyn Archive>) {
    let mut keys = vec![];
    for n in 0..300 {
        let (item, _) = accept(&*archive, post("ann", &n.to_string()), NOW + n).await;
        keys.push(item);
    }
    let (reader, author, edge, _) = change(&*archive, follow("rea", "ann")).await;
    assert_eq!(edge.from, 300);
    // The 100 newest at the follow stay the window, even when half of them go.
    for id in &keys[250..] {
        write(&*archive, delete(*id)).await.unwrap();
    }
    let head = archive.outbox(author, 0, 1).await.unwrap().head;
    let state = archive
        .edge_state(InboxKey::main(reader), author, Cut { progress: Progress::at(head), pull: 0 }, 100)
        .await
        .unwrap();
    let items: Vec<ItemId> = state.adds.iter().map(|add| add.key.item).collect();
    assert_eq!(items, keys[200..250]);
    let page = archive.feed_below(InboxKey::main(reader), None, None, 100, 1000).await.unwrap();
    let items: Vec<ItemId> = page.iter().rev().map(|add| add.key.item).collect();
    assert_eq!(items, keys[200..250]);
    let (late, ..) = change(&*archive, follow("late", "ann")).await;
    let state = archive
        .edge_state(InboxKey::main(late), author, Cut { progress: Progress::at(head), pull: 0 }, 100)
        .await
        .unwrap();
    let items: Vec<ItemId> = state.adds.iter().map(|add| add.key.item).collect();
    assert_eq!(items, keys[150..250], "what was deleted before the follow does not count");
}

pub(super) async fn i18_a_follow_step_is_told_no_more_than_that_it_is_too_much(archive: Arc<dyn Archive>) {
    const POSTS: u64 = EDGE_ADDS_MAX as u64 + 50;
    let (reader, author, ..) = change(&*archive, follow("rea", "ann")).await;
    let likes = archive.intern_feeds(&["likes".into()]).await.unwrap()[0];
    for feed in [FeedId::MAIN, likes] {
        let post = |n| Publish { id: Some(ItemId(u64::from(feed.0) * POSTS + n)), feed, ..post("ann", "one of many") };
        let posts = (0..POSTS).map(|n| Write::Publish(post(n))).collect();
        archive.write(posts, NOW).await.unwrap();
        let cut = Cut { progress: Progress::at(2 * POSTS), pull: 0 };
        let state = archive.edge_state(InboxKey { reader, feed }, author, cut, 100).await.unwrap();
        let first = u64::from(feed.0) * POSTS;
        assert!(state.adds.iter().map(|add| add.key.item.0).eq(first..=first + EDGE_ADDS_MAX as u64), "{feed:?}");
    }
}

pub(super) async fn a_rebuild_brings_what_push_has_not_and_says_of_whom(archive: Arc<dyn Archive>) {
    let (reader, ann, ..) = change(&*archive, follow("rea", "ann")).await;
    let (_, ben, ..) = change(&*archive, follow("rea", "ben")).await;
    change(&*archive, follow("rea", "silent")).await;
    let mut items = vec![];
    for author in ["ann", "ben", "ann"] {
        items.push(accept(&*archive, post(author, "x"), NOW).await.0);
    }
    let ahead = async |progress: &[(UserNo, Progress)]| {
        let built = archive.build(InboxKey::main(reader), progress, 10, 10).await.unwrap();
        let brought: Vec<_> = built.adds.iter().map(|add| add.key.item).collect();
        assert_eq!(brought.len(), items.len(), "all of it, always");
        assert!(items.iter().all(|item| brought.contains(item)), "{brought:?}");
        let mut ahead = built.ahead;
        ahead.sort_unstable();
        ahead
    };
    assert_eq!(ahead(&[]).await, [(ann, 2), (ben, 1)]);
    assert_eq!(ahead(&[(ann, Progress::at(2)), (ben, Progress::at(1)), (UserNo(77), Progress::at(5))]).await, []);
    let inside = Progress { done: 1, last: Some(reader) };
    assert_eq!(ahead(&[(ben, Progress::at(0)), (ann, inside)]).await, [(ann, 2), (ben, 1)]);
}
