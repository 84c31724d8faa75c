//! Tests of the outbox: it is dense and in commit order, and each record has the route of its item's add.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Write, Written};
use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, FeedId, ItemId, Op, Record};

use super::{NOW, OneEdge, accept, delete, edit, follow, number, post, unfollow, write};

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
