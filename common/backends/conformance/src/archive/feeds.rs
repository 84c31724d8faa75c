//! Tests of named feeds: each item stands in one feed, and a question about a feed is answered from it alone.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Audience, Below, FeedAdd, Publish, Write, Written};
use feedgate_common::change::Class;
use feedgate_common::import::Import;
use feedgate_common::{Cut, FeedId, InboxKey, ItemId, Op, Progress, UserNo, Watermarks};

use super::{
    NOW, OneEdge, accept, change, classify, delete, edit, follow, number, post, to_users, user, write, write_at,
};

/// The numbers of the feeds "likes" and "stories".
async fn named(archive: &dyn Archive) -> [FeedId; 2] {
    let feeds = archive.intern_feeds(&["likes", "stories"].map(Into::into)).await.expect("the archive works");
    feeds.try_into().expect("one number a name")
}

fn to(feed: FeedId, publish: Publish) -> Publish {
    Publish { feed, ..publish }
}

/// Publishes an item to a feed of the followers. Answers the item.
async fn say(archive: &dyn Archive, feed: FeedId, author: &str) -> ItemId {
    accept(archive, to(feed, post(author, "x")), NOW).await.0
}

/// Publishes an item to a feed of one reader. Answers the item.
async fn tell(archive: &dyn Archive, feed: FeedId, author: &str, reader: &str) -> ItemId {
    match write(archive, Write::Publish(to(feed, to_users(author, "x", &[reader])))).await {
        Ok(Written::Published { id, outbox_seq: 0, fresh: true, .. }) => id,
        other => panic!("a new item is accepted, not {other:?}"),
    }
}

/// The op, the feed and the item of each record of an outbox.
async fn outbox(archive: &dyn Archive, author: UserNo) -> Vec<(Op, FeedId, ItemId)> {
    let records = archive.outbox(author, 0, 1000).await.expect("the archive works").records;
    records.into_iter().map(|record| (record.op, record.feed, record.key.item)).collect()
}

/// All news of one feed from the beginning, read in steps of `limit` entries, and the number of steps.
async fn news(archive: &dyn Archive, key: InboxKey, limit: usize, heads: Watermarks) -> (Vec<(Op, ItemId)>, usize) {
    let (mut seen, mut after, mut steps) = (vec![], Watermarks::default(), 0);
    while after != heads {
        let next = archive.news(key, after, limit).await.expect("the archive works");
        assert!(next.upto.pull >= after.pull && next.upto.direct >= after.direct && next.upto != after, "it goes on");
        seen.extend(next.entries.iter().map(|entry| (entry.op, entry.key.item)));
        (after, steps) = (next.upto, steps + 1);
    }
    (seen, steps)
}

fn items(adds: &[FeedAdd]) -> Vec<ItemId> {
    adds.iter().map(|add| add.key.item).collect()
}

/// The adds that each way of reading gives to an inbox, oldest first. Push and pull have passed all of the author's
/// records.
async fn shown(archive: &dyn Archive, key: InboxKey, author: UserNo, backfill: usize) -> Vec<ItemId> {
    let progress = Progress::at(1000);
    let cut = Cut { progress, pull: 1000 };
    let state = archive.edge_state(key, author, cut, backfill).await.expect("the archive works");
    let (of, pulled) = ([(author, progress)], [FeedId(9), key.feed].map(|feed| (feed, cut.pull)));
    let among = archive.edge_states(key.reader, &of, &pulled, backfill).await.expect("the archive works");
    assert!(among.states[0][0].adds.is_empty(), "each feed by itself");
    assert_eq!((&among.states[1], &among.edges), (&vec![state.clone()], &vec![state.edge]));
    let of_none = archive.edge_states(key.reader, &of, &[], backfill).await.expect("the archive works");
    assert_eq!((of_none.edges, of_none.feeds, of_none.states), (among.edges, among.feeds, vec![]));
    let page = archive.feed_below(key, Below::newest(1000), backfill).await.expect("the archive works");
    let built = archive.build(key, &[(author, progress)], backfill, 1000).await.expect("the archive works");
    assert_eq!(items(&built.adds), items(&state.adds), "a rebuild brings what the follow door does");
    assert_eq!(items(&page).into_iter().rev().collect::<Vec<_>>(), items(&state.adds), "and so does a deep page");
    items(&state.adds)
}

pub(super) async fn names_of_feeds_have_dense_numbers_that_outlive_a_restart(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("feed-names").await;
    let of = async |archive: &dyn Archive, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|&name| name.into()).collect();
        let feeds = archive.intern_feeds(&names).await.expect("the archive works");
        feeds.iter().map(|feed| feed.0).collect::<Vec<_>>()
    };
    assert_eq!(archive.feeds().await.unwrap(), [FeedId::MAIN], "there is always the main one");
    assert_eq!(of(&*archive, &[]).await, [0; 0]);
    assert_eq!(of(&*archive, &["likes", "stories", "likes"]).await, [1, 2, 1]);
    assert_eq!(of(&*archive, &["more", "stories"]).await, [3, 2], "a name that is known takes no number");
    let item = say(&*archive, FeedId(2), "ann").await;
    drop(archive);

    let archive = open("feed-names").await;
    assert_eq!(archive.feeds().await.unwrap(), [0, 1, 2, 3].map(FeedId), "the main one first, then each by number");
    let nobody = [(UserNo(9), Progress::default())];
    let of_none = archive.edge_states(UserNo(8), &nobody, &[(FeedId(3), 0)], 10).await.unwrap();
    assert_eq!(of_none.feeds, [0, 1, 2, 3].map(FeedId), "whether there is an edge or not");
    assert_eq!(of(&*archive, &["more", "last", "likes", "stories"]).await, [3, 4, 1, 2]);
    write(&*archive, edit(item, "y")).await.unwrap();
    let ann = number(&*archive, "ann").await;
    assert_eq!(outbox(&*archive, ann).await, [(Op::Add, FeedId(2), item), (Op::Update, FeedId(2), item)]);
}

/// Many tasks give numbers to one name at once, as nodes do that start together.
pub(super) async fn a_name_interned_by_many_at_once_has_one_number(archive: Arc<dyn Archive>) {
    let intern = |turn: usize| {
        let archive = archive.clone();
        let mut names = ["a", "b", "c", "d"];
        names.rotate_left(turn);
        tokio::spawn(async move {
            let feeds = archive.intern_feeds(&names.map(Into::into)).await.expect("the archive works");
            let mut named: Vec<_> = names.into_iter().zip(feeds).collect();
            named.sort_unstable();
            named
        })
    };
    let all: Vec<_> = (0..8).map(|turn| intern(turn % 4)).collect();
    let mut answers = vec![];
    for one in all {
        answers.push(one.await.expect("no task panics"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let mut numbers: Vec<_> = answers[0].iter().map(|(_, feed)| *feed).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4].map(FeedId), "dense, whoever came first");
    assert_eq!(archive.feeds().await.unwrap(), [0, 1, 2, 3, 4].map(FeedId));
}

/// The item is pushed, pulled, or addressed to a reader.
pub(super) async fn i11_an_edit_and_a_delete_go_where_the_add_went(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [likes, stories] = named(archive).await;
    let (rea, ann, ..) = change(archive, follow("rea", "ann")).await;
    let pushed = say(archive, likes, "ann").await;
    write(archive, classify("ann", Class::Pull)).await.unwrap();
    let pulled = say(archive, stories, "ann").await;
    let direct = tell(archive, likes, "ann", "rea").await;
    for item in [pushed, pulled, direct] {
        write(archive, edit(item, "y")).await.unwrap();
        write(archive, delete(item)).await.unwrap();
    }
    let ops = [Op::Add, Op::Update, Op::Delete];
    let mut wants = vec![(Op::Add, likes, pushed), (Op::Add, stories, pulled)];
    wants.extend(ops[1..].iter().map(|op| (*op, likes, pushed)));
    wants.extend(ops[1..].iter().map(|op| (*op, stories, pulled)));
    assert_eq!(outbox(archive, ann).await, wants, "one outbox, dense over all feeds");
    let heads = Watermarks { pull: 3, direct: 3 };
    for (feed, wants) in [
        (FeedId::MAIN, vec![]),
        (likes, ops.map(|op| (op, direct)).to_vec()),
        (stories, ops.map(|op| (op, pulled)).into()),
    ] {
        assert_eq!(news(archive, InboxKey { reader: rea, feed }, 100, heads).await.0, wants, "{feed:?}");
    }
}

/// The number of items of other feeds between the items of a feed does not matter.
pub(super) async fn a_follow_brings_the_newest_of_each_feed_by_itself(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [likes, stories] = named(archive).await;
    let (mut main, mut liked) = (vec![], vec![]);
    for n in 0..60 {
        match n % 20 {
            0 => main.push(say(archive, FeedId::MAIN, "ann").await),
            _ => liked.push(say(archive, likes, "ann").await),
        }
    }
    let (reader, ann, edge, _) = change(archive, follow("rea", "ann")).await;
    assert_eq!(edge.from, 60, "feeds share the numbers of an outbox");
    let key = |feed| InboxKey { reader, feed };
    for backfill in [0, 2, 100] {
        let newest = |items: &[ItemId]| items[items.len().saturating_sub(backfill)..].to_vec();
        assert_eq!(shown(archive, key(FeedId::MAIN), ann, backfill).await, newest(&main));
        assert_eq!(shown(archive, key(likes), ann, backfill).await, newest(&liked));
        assert_eq!(shown(archive, key(stories), ann, backfill).await, []);
    }
    write(archive, delete(main[2])).await.unwrap();
    assert_eq!(shown(archive, key(FeedId::MAIN), ann, 2).await, main[1..2], "nothing moves up for what goes later");
    assert_eq!(shown(archive, key(likes), ann, 2).await, liked[liked.len() - 2..]);
    for _ in 0..3 {
        main.push(say(archive, FeedId::MAIN, "ann").await);
    }
    assert_eq!(shown(archive, key(FeedId::MAIN), ann, 0).await, main[3..], "since the follow, all of it");
    assert_eq!(shown(archive, key(likes), ann, 0).await, []);
    for (feed, of) in [(FeedId::MAIN, [&main[..2], &main[3..]].concat()), (likes, liked), (stories, vec![])] {
        let mut profile = archive.profile(ann, feed, None, 1000).await.unwrap();
        profile.reverse();
        assert_eq!(profile.iter().map(|key| key.item).collect::<Vec<_>>(), of, "a profile shows one feed");
    }
}

pub(super) async fn what_is_addressed_reaches_one_feed_and_its_number_counts_in_all(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [likes, stories] = named(archive).await;
    let mut told = vec![];
    for feed in [likes, FeedId::MAIN, likes] {
        told.push((feed, tell(archive, feed, "ann", "rea").await));
    }
    let reader = number(archive, "rea").await;
    for feed in [FeedId::MAIN, likes, stories] {
        let key = InboxKey { reader, feed };
        let wants: Vec<ItemId> = told.iter().filter(|(of, _)| *of == feed).map(|(_, item)| *item).collect();
        let news = archive.news(key, Watermarks::default(), 10).await.unwrap();
        assert_eq!(news.upto.direct, 3, "{feed:?} is told how far that goes");
        assert_eq!(news.entries.iter().map(|entry| entry.key.item).collect::<Vec<_>>(), wants, "{feed:?}");
        assert_eq!(archive.news(key, news.upto, 10).await.unwrap().entries, []);
        let mut page = archive.feed_below(key, Below::newest(10), 10).await.unwrap();
        page.reverse();
        assert_eq!(items(&page), wants, "{feed:?}");
        let built = archive.build(key, &[], 10, 10).await.unwrap();
        assert_eq!((items(&built.adds), built.taken.direct), (wants, 3));
    }
    let all: Vec<ItemId> = told.iter().map(|(_, item)| *item).collect();
    let mut addressed = archive.addressed(reader, &all).await.unwrap();
    addressed.sort_unstable();
    assert_eq!(addressed, all, "the reader may see them, in whatever feed");
}

/// Records of other feeds cost no step: the next step of the feed passes them.
pub(super) async fn a_limit_of_news_counts_the_feeds_own(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [likes, stories] = named(archive).await;
    write(archive, classify("ann", Class::Pull)).await.unwrap();
    let (reader, ..) = change(archive, follow("rea", "ann")).await;
    let mut main = vec![];
    for n in 0..40 {
        match n % 10 {
            0 => main.push(say(archive, FeedId::MAIN, "ann").await),
            _ => _ = say(archive, likes, "ann").await,
        }
    }
    for n in 0..40 {
        match n % 10 {
            9 => main.push(tell(archive, FeedId::MAIN, "ben", "rea").await),
            _ => _ = tell(archive, likes, "ben", "rea").await,
        }
    }
    let heads = Watermarks { pull: 40, direct: 40 };
    let wants: Vec<_> = main.into_iter().map(|item| (Op::Add, item)).collect();
    let key = |feed| InboxKey { reader, feed };
    assert_eq!(news(archive, key(FeedId::MAIN), 9, heads).await, (wants.clone(), 1), "fewer than asked for is all");
    for limit in [1, 3, 8] {
        let (seen, steps) = news(archive, key(FeedId::MAIN), limit, heads).await;
        let most = 2 + wants.len().div_ceil(limit);
        assert!(seen == wants && steps <= most, "{limit} a step: {steps} steps, {seen:?}");
    }
    assert_eq!(news(archive, key(likes), 100, heads).await.0.len(), 72);
    assert_eq!(news(archive, key(stories), 1, heads).await, (vec![], 1), "an empty feed is passed by at once");
}

/// The feed of an item follows from its kind, by a configuration that may have changed between the two requests.
pub(super) async fn i6_a_retry_that_would_go_to_another_feed_gives_the_first_answer(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [likes, stories] = named(archive).await;
    let by_key = Publish { idempotency_key: Some("key".into()), ..post("ann", "by key") };
    let by_id = Publish { id: Some(ItemId(42)), ..post("ann", "by id") };
    let by_foreign_id = Publish { foreign_id: Some("theirs".into()), ..post("ann", "by foreign id") };
    let mut wants = vec![];
    for wanted in [by_key, by_id, by_foreign_id] {
        let (item, seq) = accept(archive, to(likes, wanted.clone()), NOW).await;
        wants.push((Op::Add, likes, item));
        for feed in [FeedId::MAIN, stories] {
            let again = write_at(archive, Write::Publish(to(feed, wanted.clone())), NOW + 1).await;
            let Ok(Written::Published { id, outbox_seq, fresh: false, .. }) = again else { panic!("{again:?}") };
            assert_eq!((id, outbox_seq), (item, seq));
        }
    }
    let ann = number(archive, "ann").await;
    assert_eq!(outbox(archive, ann).await, wants, "it stays where it went first");
}

pub(super) async fn history_goes_to_its_feed(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [likes, stories] = named(archive).await;
    let item = |id, feed, deleted| {
        let publish = Publish { id: Some(ItemId(id)), published_at: Some(id as i64), feed, ..post("ann", "then") };
        Import::Item { publish, version: 1, deleted }
    };
    let direct = Publish {
        id: Some(ItemId(9)),
        audience: Audience::Users(vec![user("rea")]),
        ..to(stories, post("ann", "to you"))
    };
    let lines = [
        item(1, likes, false),
        item(2, FeedId::MAIN, false),
        item(3, likes, true),
        Import::Delete { item: ItemId(3) },
        Import::Item { publish: direct, version: 1, deleted: false },
    ];
    for line in lines {
        write(archive, Write::Import(line)).await.unwrap();
    }
    let (reader, ann, ..) = change(archive, follow("rea", "ann")).await;
    let [one, two, three] = [1, 2, 3].map(ItemId);
    let wants =
        [(Op::Add, likes, one), (Op::Add, FeedId::MAIN, two), (Op::Add, likes, three), (Op::Delete, likes, three)];
    assert_eq!(outbox(archive, ann).await, wants);
    for (feed, item) in [(likes, one), (FeedId::MAIN, two)] {
        assert_eq!(shown(archive, InboxKey { reader, feed }, ann, 10).await, [item]);
    }
    let page = archive.feed_below(InboxKey { reader, feed: stories }, Below::newest(10), 10).await.unwrap();
    assert_eq!(items(&page), [ItemId(9)]);
}
