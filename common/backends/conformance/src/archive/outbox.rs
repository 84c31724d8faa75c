//! Tests of the outbox: it is dense and in commit order, and each record has the route of its item's add.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Refused, Write, Written};
use feedgate_common::change::{Class, Route};
use feedgate_common::{Cut, DisplayKey, FeedId, InboxKey, ItemId, Op, OutboxSeq, Progress, Record, UserNo};

use super::{NOW, OneEdge, accept, classify, delete, edit, edited, follow, move_to, number, post, unfollow, write};

pub(super) async fn an_outbox_is_dense_and_in_commit_order(archive: Arc<dyn Archive>) {
    let mut ids = vec![];
    for n in 1..=7 {
        let (id, seq) = accept(&*archive, post("ann", &n.to_string()), NOW + n).await;
        assert_eq!(seq, n as u64);
        ids.push(id);
        accept(&*archive, post("ben", &n.to_string()), NOW + n).await;
    }
    let author = number(&*archive, "ann").await;
    for (after, limit, wants) in [(0, 100, 1..8), (0, 3, 1..4), (3, 3, 4..7), (6, 3, 7..8), (7, 3, 8..8)] {
        let outbox = archive.outbox(author, after, limit).await.unwrap();
        assert_eq!(outbox.head, 7);
        assert_eq!(outbox.records.iter().map(|r| r.seq).collect::<Vec<_>>(), wants.collect::<Vec<u64>>());
        assert!(outbox.records.iter().all(|r| r.key.item == ids[r.seq as usize - 1]));
    }
    assert_eq!(archive.outbox(author, u64::MAX, 3).await.unwrap().records, []);
    let silent = number(&*archive, "silent").await;
    assert_eq!(archive.outbox(silent, 0, 3).await.unwrap().head, 0);
}

pub(super) async fn i11_updates_and_deletes_take_the_door_of_their_add_behind_it(archive: Arc<dyn Archive>) {
    let mut publish = post("ann", "one");
    publish.rank = Some(77);
    let (item, _) = accept(&*archive, publish, NOW).await;
    write(&*archive, edit(item, "two")).await.unwrap();
    write(&*archive, delete(item)).await.unwrap();
    let author = number(&*archive, "ann").await;
    let key = DisplayKey { rank: 77, item };
    let record = |seq, op| Record { seq, op, route: Route::Push, feed: FeedId::MAIN, key };
    let wants = [record(1, Op::Add), record(2, Op::Update), record(3, Op::Delete)];
    assert_eq!(archive.outbox(author, 0, 10).await.unwrap().records, wants);
}

/// The outbox of `author` as ops, ranks and places, and what each record moved with.
async fn told(archive: &dyn Archive, author: UserNo) -> Vec<(Op, i64, Option<OutboxSeq>)> {
    let records = archive.outbox(author, 0, 100).await.unwrap().records;
    let moves = archive.moves(author, &records).await.unwrap();
    records.iter().zip(moves).map(|(record, moved)| (record.op, record.key.rank, moved)).collect()
}

pub(super) async fn s11_a_new_rank_is_a_delete_and_an_add_by_the_items_own_route(archive: Arc<dyn Archive>) {
    use Op::{Add, Delete, Update};
    let archive = &*archive;
    write(archive, classify("ann", Class::Pull)).await.unwrap();
    let mut publish = post("ann", "one");
    publish.rank = Some(7);
    let (item, _) = accept(archive, publish.clone(), NOW).await;
    write(archive, classify("ann", Class::Push)).await.unwrap();
    let author = number(archive, "ann").await;
    let edited = |version| edited(author, version, &[]);
    assert_eq!(write(archive, move_to(item, 9)).await, edited(2));
    let records = archive.outbox(author, 0, 10).await.unwrap().records;
    assert!(records.iter().all(|record| record.route == Route::Pull), "as the item was accepted: {records:?}");
    assert_eq!(told(archive, author).await, [(Add, 7, Some(2)), (Delete, 7, Some(2)), (Add, 9, None)]);
    let read = async || archive.items(&[item]).await.unwrap()[0].clone().expect("it lives");
    let now = read().await;
    assert_eq!((now.rank, now.version, now.outbox_seq, now.published_at), (9, 2, 3, NOW));
    assert_eq!(now.body, publish.body);
    let profile = async || archive.profile(author, FeedId::MAIN, None, 10).await.unwrap();
    assert_eq!(profile().await, [DisplayKey { rank: 9, item }]);

    assert_eq!(write(archive, move_to(item, 9)).await, edited(2), "the rank that it has changes nothing");
    assert_eq!(archive.outbox(author, 0, 10).await.unwrap().head, 3);

    let Write::Edit { body, .. } = edit(item, "two") else { panic!("an edit") };
    let both = Write::Edit { item, body: body.clone(), rank: Some(7), mentions: None, if_version: Some(2) };
    assert_eq!(write(archive, both.clone()).await, edited(3));
    assert_eq!(write(archive, both).await, Err(Refused::VersionMismatch { item, version: 3 }));
    let now = read().await;
    assert_eq!((now.rank, now.version, now.outbox_seq, Some(&now.body)), (7, 3, 5, body.as_ref()));
    assert_eq!(profile().await, [DisplayKey { rank: 7, item }], "back at the rank of before");

    write(archive, edit(item, "three")).await.unwrap();
    write(archive, delete(item)).await.unwrap();
    let wants = [
        (Add, 7, Some(2)),
        (Delete, 7, Some(2)),
        (Add, 9, Some(4)),
        (Delete, 9, Some(4)),
        (Add, 7, None),
        (Update, 7, None),
        (Delete, 7, None),
    ];
    assert_eq!(told(archive, author).await, wants);
    assert_eq!(profile().await, []);
    assert_eq!(write(archive, move_to(item, 1)).await, Err(Refused::NoSuchItem(item)));
}

pub(super) async fn s11_one_call_moves_an_item_that_it_made(archive: Arc<dyn Archive>) {
    use Op::{Add, Delete, Update};
    let archive = &*archive;
    for (author, class) in [("ann", Class::Push), ("ben", Class::Pull)] {
        let item = ItemId(10 + class as u64);
        let mut publish = post(author, "one");
        (publish.id, publish.rank) = (Some(item), Some(7));
        let made = [classify(author, class), Write::Publish(publish.clone()), move_to(item, 9), edit(item, "two")];
        let ended = [move_to(item, 7), move_to(item, 5), delete(item)];
        let living = archive.write(made.to_vec(), NOW).await.unwrap();
        assert!(living.iter().all(Result::is_ok), "{living:?}");
        let no = number(archive, author).await;
        let begun = [(Add, 7, Some(2)), (Delete, 7, Some(2)), (Add, 9, None), (Update, 9, None)];
        assert_eq!(told(archive, no).await, begun);
        let feed = FeedId::MAIN;
        assert_eq!(archive.profile(no, feed, None, 10).await.unwrap(), [DisplayKey { rank: 9, item }]);
        assert!(archive.write(ended.to_vec(), NOW).await.unwrap().iter().all(Result::is_ok));
        let moved = [(Delete, 9, Some(5)), (Add, 7, Some(7)), (Delete, 7, Some(7)), (Add, 5, None), (Delete, 5, None)];
        let begun = [(Add, 7, Some(2)), (Delete, 7, Some(2)), (Add, 9, Some(5)), (Update, 9, None)];
        assert_eq!(told(archive, no).await, [&begun[..], &moved].concat());
        assert_eq!(archive.profile(no, feed, None, 10).await.unwrap(), []);
    }
}

/// A follow counts the add that stood when it began, and a move brings an item that was too old for it.
pub(super) async fn s11_who_followed_before_a_move_is_shown_the_item_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let mut items = vec![];
    for rank in 1..=3 {
        let mut publish = post("ann", "x");
        publish.rank = Some(rank);
        items.push(accept(archive, publish, NOW).await.0);
    }
    write(archive, follow("rea", "ann")).await.unwrap();
    let (rea, ann) = (number(archive, "rea").await, number(archive, "ann").await);
    let key = InboxKey::main(rea);
    let shown = async |pushed| {
        let cut = Cut { progress: Progress::at(pushed), pull: 0 };
        let state = archive.edge_state(key, ann, cut, 2).await.unwrap();
        state.adds.iter().map(|add| (add.outbox_seq, add.key.item)).collect::<Vec<_>>()
    };
    assert_eq!(shown(3).await, [(2, items[1]), (3, items[2])]);
    write(archive, move_to(items[2], 9)).await.unwrap();
    write(archive, move_to(items[0], 8)).await.unwrap();
    assert_eq!(shown(3).await, [(2, items[1])], "push will bring the delete and the add");
    assert_eq!(shown(5).await, [(2, items[1]), (5, items[2])]);
    assert_eq!(shown(7).await, [(2, items[1]), (5, items[2]), (7, items[0])]);
    let rebuilt = archive.build(key, &[(ann, Progress::at(7))], 2, 10).await.unwrap();
    let adds: Vec<_> = rebuilt.adds.iter().map(|add| (add.outbox_seq, add.key.rank)).collect();
    assert_eq!(adds, [(2, 2), (5, 9), (7, 8)]);
}

pub(super) async fn one_call_is_one_order_and_sees_its_own_effects(archive: Arc<dyn Archive>) {
    let mut given = post("ann", "one");
    given.id = Some(ItemId(5));
    let calls = vec![
        follow("rea", "ann"),
        Write::Publish(given.clone()),
        Write::Publish(given),
        unfollow("rea", "ann"),
        edit(ItemId(5), "two"),
        follow("rea", "ann"),
        delete(ItemId(5)),
        delete(ItemId(5)),
        Write::Publish(post("ann", "three")),
    ];
    let answers = archive.write(calls, NOW).await.unwrap();
    let fresh: Vec<bool> = answers
        .iter()
        .map(|answer| match answer {
            Ok(Written::Published { fresh, .. } | Written::Deleted { fresh, .. } | Written::Edge { fresh, .. }) => {
                *fresh
            }
            Ok(Written::Edited { version, .. }) => *version == 2,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(fresh, [true, true, false, true, true, true, true, false, true]);
    let Ok(Written::Edge { reader, author, edge, .. }) = answers[5] else { panic!("{:?}", answers[5]) };
    assert_eq!((edge.on, edge.from), (true, 2), "the head as it stood at its place in the call");
    assert_eq!(archive.edge(reader, author).await.unwrap(), edge);
    let ops: Vec<Op> = archive.outbox(author, 0, 10).await.unwrap().records.iter().map(|r| r.op).collect();
    assert_eq!(ops, [Op::Add, Op::Update, Op::Delete, Op::Add]);
}

pub(super) async fn writers_at_the_same_time_leave_dense_outboxes(archive: Arc<dyn Archive>) {
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let writers = (0..WRITERS).map(|writer| {
        let archive = archive.clone();
        tokio::spawn(async move {
            let mut seqs = vec![];
            for n in 0..EACH {
                seqs.push(accept(&*archive, post("ann", &format!("{writer}/{n}")), NOW).await.1);
            }
            assert!(seqs.is_sorted(), "a writer's own posts stand in its order");
            seqs
        })
    });
    let mut seqs = vec![];
    for writer in writers.collect::<Vec<_>>() {
        seqs.extend(writer.await.expect("no writer panics"));
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=(WRITERS * EACH) as u64).collect::<Vec<_>>());
}
