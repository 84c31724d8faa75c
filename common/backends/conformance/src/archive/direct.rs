//! Tests of items that are addressed to readers by name.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, Event, Publish, Refused, Write, Written};
use feedgate_common::graph::Shield;
use feedgate_common::{DirectSeq, Entry, FeedId, InboxKey, ItemId, Op, UserNo, Watermarks};

use super::{
    NOW, change, delete, edit, edited, follow, move_to, number, post, shield, to_users, unfollow, user, write, write_at,
};

/// Publishes an item to named readers. Answers the item, its author and the readers who were given it.
async fn send(archive: &dyn Archive, publish: Publish, now: i64) -> (ItemId, UserNo, Vec<UserNo>) {
    match write_at(archive, Write::Publish(publish), now).await {
        Ok(Written::Published { id, author, outbox_seq: 0, readers, fresh: true, .. }) => (id, author, readers),
        other => panic!("a new item is accepted, not {other:?}"),
    }
}

async fn ops(archive: &dyn Archive, reader: UserNo) -> Vec<(Op, ItemId)> {
    let news = archive.news(InboxKey::main(reader), Watermarks::default(), 1000).await.expect("the archive works");
    assert!(news.entries.iter().all(Entry::is_direct));
    assert_eq!(news.upto.direct, news.entries.len() as DirectSeq, "dense from 1");
    news.entries.iter().map(|entry| (entry.op, entry.key.item)).collect()
}

pub(super) async fn what_is_addressed_to_a_reader_in_a_block_is_not_delivered(archive: Arc<dyn Archive>) {
    let [one, two, three] = ["one", "two", "three"].map(user);
    let [one, two, three] = archive.intern(&[one, two, three]).await.unwrap()[..] else { panic!("three") };
    write(&*archive, shield("one", Shield::Block, "ann", true)).await.unwrap();
    write(&*archive, shield("ann", Shield::Block, "two", true)).await.unwrap();
    for shield_only in [shield("three", Shield::Mute, "ann", true), shield("ann", Shield::Hide, "three", true)] {
        write(&*archive, shield_only).await.unwrap();
    }
    let (item, _, readers) = send(&*archive, to_users("ann", "x", &["one", "two", "three"]), NOW).await;
    assert_eq!(readers, [three], "a mute and a hide are no block");
    write(&*archive, shield("one", Shield::Block, "ann", false)).await.unwrap();
    write(&*archive, edit(item, "later")).await.unwrap();
    assert_eq!(ops(&*archive, one).await, [], "it was for others, and so is all that follows");
    assert_eq!(ops(&*archive, two).await, []);
    assert_eq!(ops(&*archive, three).await, [(Op::Add, item), (Op::Update, item)]);
    for (reader, sees) in [(one, false), (two, false), (three, true)] {
        assert_eq!(archive.addressed(reader, &[item]).await.unwrap() == [item], sees);
    }
}

pub(super) async fn an_item_addressed_twice_to_one_reader_counts_once(archive: Arc<dyn Archive>) {
    let (item, ann, readers) = send(&*archive, to_users("ann", "x", &["rea", "ann", "rea"]), NOW).await;
    let rea = number(&*archive, "rea").await;
    let mut sorted = readers.clone();
    sorted.sort_unstable();
    assert!(sorted == [ann.min(rea), ann.max(rea)], "also to its author: {readers:?}");
    for reader in [rea, ann] {
        assert_eq!(ops(&*archive, reader).await, [(Op::Add, item)]);
    }
    let (nobodys, _, readers) = send(&*archive, to_users("ann", "to nobody", &[]), NOW).await;
    assert_eq!(readers, []);
    assert!(archive.items(&[nobodys]).await.unwrap()[0].as_ref().is_some_and(|item| item.direct));
}

/// An item that reached nobody has an id and is exported. It names no reader, or only readers behind a block.
pub(super) async fn an_item_that_reached_nobody_is_told_of_as_one_until_its_end(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    write(archive, shield("rea", Shield::Block, "ann", true)).await.unwrap();
    let mut wants = vec![];
    for readers in [&["rea"][..], &[], &["ben"], &["rea", "ben"]] {
        let (item, ann, reached) = send(archive, to_users("ann", "x", readers), NOW).await;
        assert_eq!(reached, if readers.contains(&"ben") { vec![number(archive, "ben").await] } else { vec![] });
        assert_eq!(archive.addressed(ann, &[item]).await.unwrap(), []);
        wants.push((item, reached));
    }
    for at_once in 1..=5 {
        let (mut found, mut after) = (vec![], None);
        loop {
            let some = archive.direct_items(after, at_once).await.unwrap();
            let Some((last, _)) = some.last() else { break };
            after = Some(*last);
            found.extend(some);
        }
        assert_eq!(found, wants, "{at_once} at a time");
    }
    let (nobodys, _) = wants.remove(0);
    let edited = write(archive, edit(nobodys, "y")).await;
    assert!(matches!(&edited, Ok(Written::Edited { version: 2, readers, .. }) if readers.is_empty()), "{edited:?}");
    write(archive, delete(nobodys)).await.unwrap();
    assert_eq!(archive.direct_items(None, 10).await.unwrap(), wants);
}

/// An edit and a delete reach the readers whom the item reached, whatever has become of edges and blocks since.
pub(super) async fn a_new_version_and_the_end_reach_whom_the_item_reached(archive: Arc<dyn Archive>) {
    let (item, ann, readers) = send(&*archive, to_users("ann", "x", &["rea", "ben"]), NOW).await;
    let (rea, ben) = (number(&*archive, "rea").await, number(&*archive, "ben").await);
    change(&*archive, follow("rea", "ann")).await;
    change(&*archive, unfollow("rea", "ann")).await;
    write(&*archive, shield("rea", Shield::Block, "ann", true)).await.unwrap();
    assert_eq!(archive.addressed(rea, &[item]).await.unwrap(), [], "a block hides it");
    assert_eq!(archive.addressed(ben, &[item, ItemId(1)]).await.unwrap(), [item]);
    assert_eq!(write(&*archive, edit(item, "new")).await, edited(ann, 2, &readers));
    let feed = archive.feed_below(InboxKey::main(ben), Below::newest(10), 100).await.unwrap();
    assert_eq!(
        feed.iter().map(|add| (add.key.item, add.outbox_seq, add.generation)).collect::<Vec<_>>(),
        [(item, 0, 0)]
    );
    for fresh in [true, false] {
        let deleted = write(&*archive, delete(item)).await;
        assert_eq!(
            deleted,
            Ok(Written::Deleted {
                author: ann,
                readers: readers.clone(),
                fresh,
                repost_of: None,
                mentions: vec![],
                told: vec![]
            })
        );
    }
    for reader in [rea, ben] {
        assert_eq!(ops(&*archive, reader).await, [(Op::Add, item), (Op::Update, item), (Op::Delete, item)]);
    }
    assert_eq!(archive.feed_below(InboxKey::main(ben), Below::newest(10), 100).await.unwrap(), []);
    assert_eq!(archive.outbox(ann, 0, 10).await.unwrap().head, 0, "no outbox shows it");
}

/// A moved item has an add for each rank that it had, and is still one item for its readers.
pub(super) async fn s11_a_move_reaches_whom_the_item_reached(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let mut publish = to_users("ann", "x", &["rea", "ben"]);
    (publish.id, publish.rank) = (Some(ItemId(7)), Some(1));
    let (item, ann, readers) = send(archive, publish, NOW).await;
    let (rea, ben) = (number(archive, "rea").await, number(archive, "ben").await);
    let mut sorted = readers.clone();
    sorted.sort_unstable();
    let edited = |version| edited(ann, version, &sorted);
    assert_eq!(write(archive, move_to(item, 5)).await, edited(2));
    assert_eq!(archive.write(vec![move_to(item, 3), move_to(item, 4)], NOW).await.unwrap(), [edited(3), edited(4)]);
    let below = async |reader| {
        let feed = archive.feed_below(InboxKey::main(reader), Below::newest(10), 100).await.unwrap();
        feed.iter().map(|add| (add.key.item, add.key.rank)).collect::<Vec<_>>()
    };
    for reader in [rea, ben] {
        let add = (Op::Add, item);
        let gone = (Op::Delete, item);
        assert_eq!(ops(archive, reader).await, [add, gone, add, gone, add, gone, add]);
        assert_eq!(below(reader).await, [(item, 4)]);
        assert_eq!(archive.addressed(reader, &[item]).await.unwrap(), [item]);
    }
    assert_eq!(archive.direct_items(None, 10).await.unwrap(), [(item, sorted.clone())]);
    let deleted = Ok(Written::Deleted {
        author: ann,
        readers: sorted.clone(),
        fresh: true,
        repost_of: None,
        mentions: vec![],
        told: vec![],
    });
    assert_eq!(write(archive, delete(item)).await, deleted);
    assert_eq!(below(rea).await, []);
}

pub(super) async fn a_profile_shows_nothing_that_is_addressed(archive: Arc<dyn Archive>) {
    let (_, ann, _) = send(&*archive, to_users("ann", "x", &["rea"]), NOW).await;
    let (open, seq) = super::accept(&*archive, post("ann", "for all"), NOW).await;
    assert_eq!(seq, 1);
    let shown = archive.profile(ann, FeedId::MAIN, None, 10).await.unwrap();
    assert_eq!(shown.iter().map(|key| key.item).collect::<Vec<_>>(), [open]);
    let items = archive.items(&[open]).await.unwrap();
    assert!(items[0].as_ref().is_some_and(|item| !item.direct));
}

pub(super) async fn i6_a_retry_names_the_same_readers_and_another_audience_is_another_payload(
    archive: Arc<dyn Archive>,
) {
    let mut wanted = to_users("ann", "x", &["rea", "ben", "blocked"]);
    wanted.idempotency_key = Some("key".into());
    write(&*archive, shield("blocked", Shield::Block, "ann", true)).await.unwrap();
    let (item, author, readers) = send(&*archive, wanted.clone(), NOW).await;
    write(&*archive, shield("blocked", Shield::Block, "ann", false)).await.unwrap();
    let again = Ok(Written::Published {
        id: item,
        author,
        outbox_seq: 0,
        published_at: NOW,
        readers,
        fresh: false,
        own_edge: false,
        told: vec![],
    });
    assert_eq!(write_at(&*archive, Write::Publish(wanted.clone()), NOW + 1).await, again);
    write(&*archive, delete(item)).await.unwrap();
    assert_eq!(write_at(&*archive, Write::Publish(wanted.clone()), NOW + 2).await, again);
    for audience in [post("ann", "x").audience, to_users("ann", "x", &["rea", "ben"]).audience] {
        let other = Publish { audience, ..wanted.clone() };
        assert_eq!(write(&*archive, Write::Publish(other)).await, Err(Refused::KeyReused("key".into())));
    }
}

pub(super) async fn what_is_addressed_is_outstanding_until_it_is_brought(archive: Arc<dyn Archive>) {
    let due = async |not_after| {
        let lines = archive.outstanding(None, not_after, 100).await.expect("the archive works");
        let seq = |event| match event {
            Event::Direct { seq, .. } => seq,
            other => panic!("nothing else was written: {other:?}"),
        };
        lines.into_iter().map(|line| seq(line.event)).max()
    };
    for n in 1..=3 {
        send(&*archive, to_users("ann", &n.to_string(), &["rea"]), NOW + n).await;
    }
    let reader = number(&*archive, "rea").await;
    assert_eq!((due(NOW).await, due(NOW + 3).await), (None, Some(3)));
    archive.finish(&[Event::Direct { reader, seq: 2 }]).await.unwrap();
    assert_eq!((due(NOW + 2).await, due(NOW + 3).await), (None, Some(3)), "what is left was accepted later");
    archive.finish(&[Event::Direct { reader, seq: 1 }]).await.unwrap();
    assert_eq!((due(NOW + 2).await, due(NOW + 3).await), (None, Some(3)), "a late finish brings nothing back");
    archive.finish(&[Event::Direct { reader, seq: 3 }, Event::Direct { reader: UserNo(999), seq: 1 }]).await.unwrap();
    assert_eq!(due(i64::MAX).await, None);
    assert_eq!(archive.counts().await.unwrap().events, 0);
    send(&*archive, to_users("ann", "4", &["rea"]), NOW + 9).await;
    assert_eq!((due(NOW + 8).await, due(NOW + 9).await), (None, Some(4)));
}

pub(super) async fn an_item_may_be_addressed_to_many(archive: Arc<dyn Archive>) {
    let names: Vec<String> = (0..2000).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (item, _, readers) = send(&*archive, to_users("ann", "x", &names), NOW).await;
    assert_eq!(readers.len(), 2000);
    for reader in [readers[0], readers[1999]] {
        assert_eq!(ops(&*archive, reader).await, [(Op::Add, item)]);
    }
}
