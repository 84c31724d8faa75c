//! Tests of the part of an outbox that an edge shows, and of what a rebuild is told.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, EDGE_ADDS_MAX, Publish, Write};
use feedgate_common::{Cut, FeedId, InboxKey, ItemId, Progress, UserNo};

use super::{NOW, OneEdge, accept, change, delete, follow, post, unfollow, write};

pub(super) async fn a_follow_late_reads_only_its_own_window(archive: Arc<dyn Archive>) {
    let mut keys = vec![];
    for n in 0..300 {
        let (item, _) = accept(&*archive, post("ann", &n.to_string()), NOW + n).await;
        keys.push(item);
    }
    let (reader, author, edge, _) = change(&*archive, follow("rea", "ann")).await;
    assert_eq!(edge.from, 300);
    // The window stays that of the 100 newest items at the time of the follow, even after half of them are deleted.
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
    let page = archive.feed_below(InboxKey::main(reader), Below::newest(1000), 100).await.unwrap();
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

pub(super) async fn i18_a_follow_step_is_told_of_the_first_edges_that_fit(archive: Arc<dyn Archive>) {
    const FIT: usize = 40;
    const EACH: u64 = (EDGE_ADDS_MAX / FIT) as u64;
    let likes = archive.intern_feeds(&["likes".into()]).await.unwrap()[0];
    let mut edges = vec![];
    // Some edges show nothing, one is off, and the last one shows far too many adds.
    for n in 0..FIT as u64 + 5 {
        let author = format!("author{n:02}");
        let posts = match n {
            3 | 30 => 0,
            44 => 2 * EDGE_ADDS_MAX as u64,
            _ => EACH,
        };
        let id = |at| Some(ItemId(10_000 * n + at));
        let post = |at| Write::Publish(Publish { id: id(at), ..post(&author, "x") });
        let like = Write::Publish(Publish { id: id(9_999), feed: likes, ..self::post(&author, "x") });
        archive.write((0..posts).map(post).chain([like]).collect(), NOW).await.unwrap();
        let (_, author, ..) = change(&*archive, follow("rea", &author)).await;
        edges.push((author, Progress::at(posts + 1)));
    }
    let (reader, ..) = change(&*archive, unfollow("rea", "author07")).await;
    let main = (FeedId::MAIN, 0);
    let read = async |edges: &[(UserNo, Progress)], pulled: &[(FeedId, u64)]| {
        archive.edge_states(reader, edges, pulled, EDGE_ADDS_MAX + 1).await.unwrap()
    };
    let each = async |&(author, progress): &(UserNo, Progress), feed| {
        let cut = Cut { progress, pull: 0 };
        archive.edge_state(InboxKey { reader, feed }, author, cut, EDGE_ADDS_MAX + 1).await.unwrap()
    };
    let all = read(&edges, &[main, (likes, 0)]).await;
    assert_eq!((all.edges.len(), all.states.len()), (FIT + 3, 2), "exactly as many as fit");
    for (at, edge) in edges[..FIT + 3].iter().enumerate() {
        let states = [each(edge, FeedId::MAIN).await, each(edge, likes).await];
        assert_eq!(all.edges[at], states[0].edge, "{at}");
        assert_eq!([&all.states[0][at], &all.states[1][at]], [&states[0], &states[1]], "{at}");
    }
    assert_eq!(read(&edges, &[]).await.edges.len(), edges.len(), "where there is no inbox, all");
    assert_eq!(read(&edges, &[(likes, 0)]).await.edges.len(), edges.len());
    let last = read(&edges[44..], &[main]).await;
    assert_eq!(last.states[0][0].adds.len(), EDGE_ADDS_MAX + 1, "one that alone is too much says so");
    let before = read(&edges[43..], &[main]).await;
    assert_eq!((before.edges.len(), before.states[0][0].adds.len()), (1, EACH as usize), "and stops those behind it");
    let turned = [edges[44], edges[43]];
    assert_eq!(read(&turned, &[main]).await.edges.len(), 1);
    assert_eq!(read(&[], &[main]).await.edges, []);
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
