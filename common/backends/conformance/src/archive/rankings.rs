//! Tests of rankings: what a recommender puts into a feed of a reader, and what becomes of its items.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, Event, Publish, Write, Written};
use feedgate_common::around::{Terms, brought_to, seen_by, who_sees};
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::ranking::{NoSuchItem, Ranked};
use feedgate_common::{DisplayKey, Entry, InboxKey, ItemId, Op, UserNo, Watermarks};

use super::audiences::narrowed_to;
use super::erasures::erase;
use super::{NOW, accept, delete, edit, edited, follow, move_to, number, post, shield, to_users, unfollow, write};

/// The keys of the named feeds "picks" and "more" of a reader.
async fn feeds(archive: &dyn Archive, reader: &str) -> [InboxKey; 2] {
    let feeds = archive.intern_feeds(&["picks", "more"].map(Into::into)).await.expect("the archive works");
    let reader = number(archive, reader).await;
    [0, 1].map(|nth| InboxKey { reader, feed: feeds[nth] })
}

async fn posts(archive: &dyn Archive, count: usize) -> Vec<ItemId> {
    let mut items = vec![];
    for nth in 0..count {
        items.push(accept(archive, post(["ann", "bob"][nth % 2], "x"), NOW).await.0);
    }
    items
}

fn keys(ranks: &[(ItemId, i64)]) -> Vec<DisplayKey> {
    ranks.iter().map(|&(item, rank)| DisplayKey { rank, item }).collect()
}

async fn rank(archive: &dyn Archive, key: InboxKey, ranks: &[(ItemId, i64)]) -> Ranked {
    archive.rank(key, &keys(ranks), NOW).await.expect("the archive works").expect("all items live")
}

/// The entries addressed to the reader in a feed after the record `after`, and the number of the last record.
async fn told(archive: &dyn Archive, key: InboxKey, after: u64) -> (Vec<(Op, ItemId, i64)>, u64) {
    let from = Watermarks { pull: u64::MAX, direct: after };
    let news = archive.news(key, from, 10_000).await.expect("the archive works");
    assert!(news.entries.iter().all(Entry::is_direct));
    let of = |entry: &Entry| (entry.op, entry.key.item, entry.key.rank);
    (news.entries.iter().map(of).collect(), news.upto.direct)
}

/// The ranking of a feed, which all ways to read it answer alike.
async fn shown(archive: &dyn Archive, key: InboxKey) -> Vec<(ItemId, i64)> {
    let ranking: Vec<_> = archive.ranking(key).await.unwrap().iter().map(|key| (key.item, key.rank)).collect();
    let below = archive.feed_below(key, Below::newest(2000), 10).await.unwrap();
    assert!(below.iter().all(|add| (add.outbox_seq, add.generation) == (0, 0)), "as what is addressed: {below:?}");
    assert_eq!(below.iter().map(|add| (add.key.item, add.key.rank)).collect::<Vec<_>>(), ranking);
    let built = archive.build(key, &[], 10, 2000).await.unwrap();
    assert_eq!(built.adds.iter().rev().map(|add| (add.key.item, add.key.rank)).collect::<Vec<_>>(), ranking);
    ranking
}

/// Brings edits and deletes to rankings, some at a time. Answers all readers to whom something was addressed.
async fn renew(archive: &dyn Archive, limit: usize) -> Vec<UserNo> {
    let mut readers = vec![];
    loop {
        let renewed = archive.renew_rankings(NOW, limit).await.expect("the archive works");
        assert!(renewed.readers.len() <= limit);
        readers.extend(renewed.readers);
        if !renewed.more {
            readers.sort_unstable();
            return readers;
        }
    }
}

pub(super) async fn s11_a_ranking_is_replaced_and_the_reader_is_told_the_difference(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [picks, more] = feeds(archive, "rea").await;
    let items = posts(archive, 4).await;
    let [a, b, c, d] = items[..] else { panic!("four") };
    assert_eq!((archive.ranking(picks).await.unwrap(), archive.ranking(more).await.unwrap()), (vec![], vec![]));
    let first = rank(archive, picks, &[(a, 10), (b, 30), (c, 20)]).await;
    assert_eq!(first, Ranked { added: 3, ..Ranked::default() });
    let (ops, upto) = told(archive, picks, 0).await;
    assert_eq!(ops, [(Op::Add, b, 30), (Op::Add, c, 20), (Op::Add, a, 10)]);
    assert_eq!(shown(archive, picks).await, [(b, 30), (c, 20), (a, 10)]);
    assert_eq!(shown(archive, more).await, [], "each feed by itself");

    let again = rank(archive, picks, &[(c, 20), (a, 10), (b, 30)]).await;
    assert!(!again.is_change() && told(archive, picks, upto).await == (vec![], upto), "the same in another order");
    let next = rank(archive, picks, &[(d, 15), (c, 5), (a, 10)]).await;
    assert_eq!(next, Ranked { added: 1, moved: 1, removed: 1 });
    let (ops, upto) = told(archive, picks, upto).await;
    assert_eq!(ops, [(Op::Add, d, 15), (Op::Delete, c, 20), (Op::Add, c, 5), (Op::Delete, b, 30)]);
    assert_eq!(shown(archive, picks).await, [(d, 15), (a, 10), (c, 5)]);
    assert_eq!(rank(archive, more, &[(a, 1)]).await.added, 1);
    assert_eq!(rank(archive, picks, &[]).await, Ranked { removed: 3, ..Ranked::default() });
    assert_eq!(told(archive, picks, upto).await.0.len(), 3);
    assert_eq!((shown(archive, picks).await, shown(archive, more).await), (vec![], vec![(a, 1)]));
    let due = archive.outstanding(None, NOW, 10).await.unwrap();
    let is_told = |event| matches!(event, Event::Direct { reader, .. } if reader == picks.reader);
    assert!(due.iter().any(|line| is_told(line.event)), "it is outstanding until it is brought: {due:?}");
}

/// The feed had kinds before, so an item that is addressed to the reader stands in it by itself.
pub(super) async fn s11_an_item_stands_in_a_feed_as_long_as_it_is_ranked_or_addressed(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [picks, _] = feeds(archive, "rea").await;
    let letter = Publish { feed: picks.feed, rank: Some(5), ..to_users("ann", "x", &["rea"]) };
    let (letter, _) = accept(archive, letter, NOW).await;
    let shown = async || {
        let below = archive.feed_below(picks, Below::newest(9), 10).await.unwrap();
        let built = archive.build(picks, &[], 10, 9).await.unwrap();
        let ranks: Vec<i64> = below.iter().map(|add| add.key.rank).collect();
        assert_eq!(built.adds.iter().rev().map(|add| add.key.rank).collect::<Vec<_>>(), ranks);
        ranks
    };
    let ranked = async || archive.ranking(picks).await.unwrap().iter().map(|key| key.rank).collect::<Vec<_>>();
    assert_eq!(rank(archive, picks, &[(letter, 5)]).await.added, 1);
    assert_eq!((shown().await, ranked().await), (vec![5], vec![5]));
    assert_eq!(rank(archive, picks, &[]).await.removed, 1);
    assert_eq!((shown().await, ranked().await), (vec![5], vec![]), "by itself");
    rank(archive, picks, &[(letter, 5)]).await;
    write(archive, move_to(letter, 9)).await.unwrap();
    assert_eq!((shown().await, ranked().await), (vec![9, 5], vec![5]), "by the ranking, where it stood before");
    rank(archive, picks, &[(letter, 9)]).await;
    assert_eq!((shown().await, ranked().await), (vec![9], vec![9]));
    write(archive, delete(letter)).await.unwrap();
    renew(archive, 9).await;
    assert_eq!((shown().await, ranked().await), (vec![], vec![]));
}

/// A ranking makes nobody a named reader of its items, and does not change their own ranks or their outbox.
pub(super) async fn s11_a_ranking_changes_nothing_of_its_items(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [picks, _] = feeds(archive, "rea").await;
    let letter = match write(archive, Write::Publish(to_users("ann", "x", &["ben"]))).await {
        Ok(Written::Published { id, .. }) => id,
        other => panic!("a new item is accepted, not {other:?}"),
    };
    let (open, _) = accept(archive, post("ann", "x"), NOW).await;
    let (ann, ben) = (number(archive, "ann").await, number(archive, "ben").await);
    rank(archive, picks, &[(letter, 1), (open, 2)]).await;
    assert_eq!(archive.addressed(picks.reader, &[letter, open]).await.unwrap(), []);
    assert_eq!(archive.direct_items(None, 10).await.unwrap(), [(letter, vec![ben])]);
    assert_eq!(write(archive, edit(letter, "y")).await, edited(ann, 2, &[ben]));
    write(archive, move_to(letter, 50)).await.unwrap();
    write(archive, move_to(open, 60)).await.unwrap();
    assert_eq!(shown(archive, picks).await, [(open, 2), (letter, 1)], "a rank of their own is another one");
    let main = InboxKey::main(picks.reader);
    assert_eq!(archive.feed_below(main, Below::newest(9), 9).await.unwrap(), []);
    for change in [follow("rea", "ann"), unfollow("rea", "ann")] {
        write(archive, change).await.unwrap();
        assert_eq!(shown(archive, picks).await.len(), 2);
    }
    assert_eq!(archive.outbox(ann, 0, 100).await.unwrap().records.len(), 3, "an add, a delete, an add");
}

/// Which of the items the reader sees. All ways to ask agree.
async fn seen(archive: &dyn Archive, reader: UserNo, items: &[ItemId]) -> Vec<ItemId> {
    let found = archive.items(items).await.unwrap();
    let seen = seen_by(archive, Some(reader), found.clone()).await.unwrap();
    let nobody = seen_by(archive, None, found.clone()).await.unwrap();
    assert!(nobody.iter().all(Option::is_none), "who was never named has no ranking");
    let seen: Vec<ItemId> = seen.into_iter().flatten().map(|item| item.id).collect();
    for item in found.into_iter().flatten() {
        let who = who_sees(archive, &item, &[reader, UserNo(reader.0 + 1000)]).await.unwrap();
        assert_eq!(who, if seen.contains(&item.id) { vec![reader] } else { vec![] }, "item {}", item.id);
    }
    seen
}

/// A ranking lets its reader see those of its items that a repost could show, and no others. It opens no item to other
/// users.
pub(super) async fn s11_a_ranking_opens_its_items_to_its_reader(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    // Eva has a lower number than the other readers, and a ranking of other items.
    let [early, _] = feeds(archive, "eva").await;
    let [picks, more] = feeds(archive, "rea").await;
    let [others, _] = feeds(archive, "ben").await;
    let of_eva: Vec<(ItemId, i64)> = posts(archive, 5).await.into_iter().zip(0..).collect();
    rank(archive, early, &of_eva).await;
    let letter = match write(archive, Write::Publish(to_users("ann", "x", &["ben"]))).await {
        Ok(Written::Published { id, .. }) => id,
        other => panic!("a new item is accepted, not {other:?}"),
    };
    let (open, _) = accept(archive, post("ann", "x"), NOW).await;
    let (unranked, _) = accept(archive, post("ann", "x"), NOW).await;
    write(archive, follow("ben", "ann")).await.unwrap();
    let (narrowed, _) = accept(archive, narrowed_to("ann", "x", &["ben", "rea"]), NOW).await;
    let items = [letter, open, unranked, narrowed];
    assert_eq!(seen(archive, picks.reader, &items).await, []);
    rank(archive, picks, &[(letter, 1), (open, 2), (narrowed, 3)]).await;
    rank(archive, more, &[(open, 9)]).await;
    assert_eq!(seen(archive, picks.reader, &items).await, [open], "what is for some alone stays closed");
    assert_eq!(seen(archive, others.reader, &items).await, items, "as before");
    assert_eq!(seen(archive, early.reader, &items).await, [], "each ranking opens to its own reader");
    let found = archive.items(&items).await.unwrap();
    assert!(brought_to(archive, picks.reader, &found).await.unwrap().is_empty(), "no feed of its kind brings it");

    let pair = (picks.reader, open);
    let asked =
        [(early.reader, open), (others.reader, open), pair, (picks.reader, unranked), (picks.reader, ItemId(7))];
    let ranked = async || archive.ranked(&asked).await.unwrap();
    assert_eq!(ranked().await, [(pair, Terms::default())], "once, in however many rankings it stands");
    for (by, shield_up, of, wants) in [
        ("rea", Shield::Mute, "ann", Shields::MUTED),
        ("ann", Shield::Hide, "rea", Shields::HIDDEN),
        ("rea", Shield::Block, "ann", Shields::BLOCKED_BY_READER),
        ("ann", Shield::Block, "rea", Shields::BLOCKED_BY_AUTHOR),
    ] {
        write(archive, shield(by, shield_up, of, true)).await.unwrap();
        assert_eq!(ranked().await, [(pair, Terms { shields: wants, ..Terms::default() })]);
        assert_eq!(seen(archive, picks.reader, &items).await, [], "{by}: {shield_up:?}");
        write(archive, shield(by, shield_up, of, false)).await.unwrap();
        assert_eq!(seen(archive, picks.reader, &items).await, [open]);
    }
    write(archive, follow("rea", "ann")).await.unwrap();
    assert_eq!(seen(archive, picks.reader, &items).await, [open, unranked, narrowed]);
    write(archive, unfollow("rea", "ann")).await.unwrap();
    write(archive, move_to(open, 60)).await.unwrap();
    rank(archive, more, &[]).await;
    assert_eq!(seen(archive, picks.reader, &items).await, [open], "one ranking still holds it");
    rank(archive, picks, &[(letter, 1), (open, 50)]).await;
    assert_eq!(seen(archive, picks.reader, &items).await, [open], "it has moved");
    rank(archive, picks, &[(unranked, 1)]).await;
    assert_eq!(seen(archive, picks.reader, &items).await, [unranked], "what has left is closed again");
    assert_eq!(ranked().await, [((picks.reader, unranked), Terms::default())]);
    write(archive, delete(unranked)).await.unwrap();
    renew(archive, 5).await;
    assert_eq!((seen(archive, picks.reader, &items).await, ranked().await), (vec![], vec![]));
}

pub(super) async fn s11_an_item_that_does_not_live_refuses_the_whole_ranking(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [picks, _] = feeds(archive, "rea").await;
    let items = posts(archive, 3).await;
    let [a, b, c] = items[..] else { panic!("three") };
    rank(archive, picks, &[(a, 1)]).await;
    write(archive, delete(b)).await.unwrap();
    let never = ItemId(5);
    for (wanted, nth, item) in [
        (&[(a, 2), (never, 3), (b, 4)][..], 1, never),
        (&[(b, 4), (never, 3)], 0, b),
        (&[(a, 9), (c, 1), (b, 4)], 2, b),
    ] {
        let refused = archive.rank(picks, &keys(wanted), NOW).await.unwrap();
        assert_eq!(refused, Err(NoSuchItem { nth, item }));
    }
    assert_eq!(shown(archive, picks).await, [(a, 1)], "nothing has changed");
    write(archive, delete(a)).await.unwrap();
    let refused = archive.rank(picks, &keys(&[(c, 1), (a, 1)]), NOW).await.unwrap();
    assert_eq!(refused, Err(NoSuchItem { nth: 1, item: a }), "also one that stands in it");
    assert_eq!(rank(archive, picks, &[(c, 1)]).await, Ranked { added: 1, removed: 1, ..Ranked::default() });
    assert_eq!((renew(archive, 9).await, shown(archive, picks).await), (vec![], vec![(c, 1)]));
}

pub(super) async fn s11_edits_and_deletes_reach_every_ranking_that_holds_the_item(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let items = posts(archive, 2).await;
    let [a, b] = items[..] else { panic!("two") };
    let mut all = vec![];
    for name in ["r1", "r2", "r3", "r4", "r5"] {
        let [picks, more] = feeds(archive, name).await;
        all.push((picks, 10));
        rank(archive, picks, &[(a, 10), (b, 20)]).await;
        if ["r1", "r4"].contains(&name) {
            all.push((more, 7));
            rank(archive, more, &[(a, 7)]).await;
        }
    }
    let mut readers: Vec<UserNo> = all.iter().map(|(key, _)| key.reader).collect();
    readers.sort_unstable();
    assert_eq!(renew(archive, 3).await, [], "nothing has changed yet");
    write(archive, edit(a, "new")).await.unwrap();
    write(archive, move_to(b, 99)).await.unwrap();
    for limit in [2, 100] {
        let mut ends = vec![];
        for (key, _) in &all {
            ends.push(told(archive, *key, 0).await.1);
        }
        let mut told_to = renew(archive, limit).await;
        told_to.dedup();
        let mut each = readers.clone();
        each.dedup();
        assert_eq!(told_to, each);
        for ((key, rank), end) in all.iter().zip(ends) {
            assert_eq!(
                told(archive, *key, end).await.0,
                [(Op::Update, a, *rank)],
                "once, with the rank that it has there"
            );
        }
        assert_eq!(renew(archive, limit).await, []);
        write(archive, edit(a, "newer")).await.unwrap();
    }
    renew(archive, 3).await;
    write(archive, delete(a)).await.unwrap();
    for (key, _) in &all {
        assert!(archive.ranking(*key).await.unwrap().iter().all(|place| place.item != a), "gone from sight at once");
    }
    let ends = told(archive, all[0].0, 0).await.1;
    renew(archive, 2).await;
    assert_eq!(told(archive, all[0].0, ends).await.0, [(Op::Delete, a, 10)]);
    for (key, rank) in &all {
        let left: &[(ItemId, i64)] = if *rank == 10 { &[(b, 20)] } else { &[] };
        assert_eq!(shown(archive, *key).await, left);
    }
    assert_eq!(renew(archive, 3).await, []);
}

/// A recommender may rank every minute for years. Records that all inboxes have taken in are not kept.
pub(super) async fn i18_records_of_rankings_that_were_brought_are_not_kept(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [picks, more] = feeds(archive, "rea").await;
    let items = posts(archive, 20).await;
    let letter = write(archive, Write::Publish(to_users("ann", "x", &["rea"]))).await;
    assert!(letter.is_ok());
    rank(archive, more, &[(items[0], 1)]).await;
    let mut before = 0;
    for turn in 0..10 {
        let ranks: Vec<_> = items.iter().zip(0..).map(|(item, nth)| (*item, (nth * 7 + turn) % 20)).collect();
        rank(archive, picks, &ranks).await;
        write(archive, edit(items[3], "again")).await.unwrap();
        renew(archive, 100).await;
        let (ops, upto) = told(archive, picks, before).await;
        assert_eq!(ops.len(), if turn == 0 { 21 } else { 41 }, "nothing is lost that was not brought");
        let all = told(archive, picks, 0).await.0.len();
        assert!(all <= 3 * 41, "turn {turn}: {all} records are kept");
        archive.finish(&[Event::Direct { reader: picks.reader, seq: upto }]).await.unwrap();
        before = upto;
    }
    // From here on no event is finished, so all records are kept.
    for turn in 10..14 {
        let ranks: Vec<_> = items.iter().zip(0..).map(|(item, nth)| (*item, (nth * 7 + turn) % 20)).collect();
        rank(archive, picks, &ranks).await;
    }
    assert_eq!(told(archive, picks, before).await.0.len(), 4 * 40);
    assert_eq!(shown(archive, picks).await.len(), 20);
    assert_eq!(told(archive, more, 0).await.0, [(Op::Add, items[0], 1)], "what stands in a ranking stays");
    assert_eq!(told(archive, InboxKey::main(picks.reader), 0).await.0.len(), 1, "and what is addressed otherwise");
}

pub(super) async fn i6_rankings_outlive_a_restart(open: &impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("rankings-restart").await;
    let [picks, _] = feeds(&*archive, "rea").await;
    let items = posts(&*archive, 2).await;
    rank(&*archive, picks, &[(items[0], 1), (items[1], 2)]).await;
    write(&*archive, delete(items[1])).await.unwrap();
    drop(archive);
    let archive = open("rankings-restart").await;
    assert_eq!(renew(&*archive, 5).await, [picks.reader], "what was left to do is done");
    assert_eq!(shown(&*archive, picks).await, [(items[0], 1)]);
}

pub(super) async fn s11_an_erasure_takes_rankings_and_their_items_along(archive: Arc<dyn Archive>) {
    let [mine, _] = feeds(&*archive, "rea").await;
    let [others, _] = feeds(&*archive, "ben").await;
    let items = posts(&*archive, 2).await;
    let [of_ann, of_bob] = items[..] else { panic!("two") };
    for key in [mine, others] {
        rank(&*archive, key, &[(of_ann, 1), (of_bob, 2)]).await;
    }
    erase(&archive, number(&*archive, "rea").await).await;
    assert_eq!((shown(&*archive, mine).await, told(&*archive, mine, 0).await.0), (vec![], vec![]));
    erase(&archive, number(&*archive, "ann").await).await;
    assert_eq!(renew(&*archive, 5).await, [others.reader], "nobody is told of the ranking that is gone");
    assert_eq!(shown(&*archive, others).await, [(of_bob, 2)]);
    assert_eq!(rank(&*archive, mine, &[(of_bob, 3)]).await.added, 1, "who was erased may begin anew");
    assert_eq!(shown(&*archive, mine).await, [(of_bob, 3)]);
}

/// Rankings race deletes of their items and each other. In the end no ranking holds an item that does not live.
pub(super) async fn i3_of_rankings_and_deletes_that_race_none_keeps_a_dead_item(archive: Arc<dyn Archive>) {
    let items = posts(&*archive, 24).await;
    let mut tasks = vec![];
    for name in ["r1", "r2", "r3"] {
        let [picks, _] = feeds(&*archive, name).await;
        for turn in 0..4_i64 {
            let (archive, items) = (archive.clone(), items.clone());
            tasks.push(tokio::spawn(async move {
                for first in 0..items.len() {
                    let some: Vec<_> = items[first..].iter().zip(0..).map(|(item, nth)| (*item, nth * turn)).collect();
                    _ = archive.rank(picks, &keys(&some), NOW).await.expect("the archive works");
                }
            }));
        }
    }
    for item in items.clone() {
        let archive = archive.clone();
        tasks.push(tokio::spawn(async move {
            write(&*archive, delete(item)).await.unwrap();
            archive.renew_rankings(NOW, 2).await.expect("the archive works");
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    renew(&*archive, 2).await;
    for name in ["r1", "r2", "r3"] {
        let [picks, _] = feeds(&*archive, name).await;
        assert_eq!(shown(&*archive, picks).await, [], "every item was deleted");
        let mut held = std::collections::BTreeSet::new();
        for (op, item, rank) in told(&*archive, picks, 0).await.0 {
            match op {
                Op::Add => assert!(held.insert((item, rank)), "each add follows the delete of the one before"),
                Op::Delete => assert!(held.remove(&(item, rank)), "each delete follows its add"),
                Op::Update | Op::Forget => {}
            }
        }
        assert!(held.is_empty(), "{held:?}");
    }
}
