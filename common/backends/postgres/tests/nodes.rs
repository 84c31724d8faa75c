//! Several nodes over one database: what they accept at the same moment is in one order.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod proxy;
mod server;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{
    Announcements, Epochs, Event, Events, Names, Outboxes, Publish, Refused, Write, Writes, Written,
};
use feedgate_common::{FeedId, ItemId, Millis};
use feedgate_conformance::archive::OneEdge;
use feedgate_postgres::{Options, PostgresArchive};
use proxy::Proxy;
use server::{follow, open, post, server, user};

const NOW: Millis = 1_800_000_000_000;

async fn nodes(name: &str) -> [Arc<PostgresArchive>; 2] {
    let url = server().database(name);
    [Arc::new(open(&url).await), Arc::new(open(&url).await)]
}

type Answer = Result<Written, Refused>;

async fn write(node: &PostgresArchive, write: Write) -> Answer {
    node.write(vec![write], NOW).await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_a_key_accepted_by_two_nodes_at_once_is_one_item() {
    let nodes = nodes("race").await;
    for round in 0..40 {
        // A new author each time: its number is raced for too.
        let mut wanted = post(&format!("author{}", round / 3), &round.to_string());
        match round % 3 {
            0 => wanted.idempotency_key = Some(format!("key{round}").into()),
            1 => wanted.id = Some(ItemId(round)),
            _ => wanted.foreign_id = Some(format!("theirs{round}").into()),
        }
        let tries: Vec<_> = (0..6)
            .map(|n| {
                let (node, wanted) = (nodes[n % 2].clone(), wanted.clone());
                tokio::spawn(async move { write(&node, Write::Publish(wanted)).await })
            })
            .collect();
        let (mut fresh_ones, mut items) = (0, HashSet::new());
        for attempt in tries {
            let answer = attempt.await.unwrap();
            let Ok(Written::Published { id, outbox_seq, fresh, .. }) = answer else { panic!("{answer:?}") };
            fresh_ones += usize::from(fresh);
            items.insert((id, outbox_seq));
        }
        assert_eq!((fresh_ones, items.len()), (1, 1), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_meet_the_same_new_names_at_once_give_each_one_number_and_no_insert_fails() {
    let nodes = nodes("names").await;
    for round in 0..30 {
        let names: Vec<_> = (0..5).map(|n| user(&format!("user{round}-{n}"))).collect();
        let calls: Vec<_> = (0..6)
            .map(|n| {
                let (node, names) = (nodes[n % 2].clone(), names.clone());
                tokio::spawn(async move { node.intern(&names).await.unwrap() })
            })
            .collect();
        let mut given = HashSet::new();
        for call in calls {
            given.insert(call.await.unwrap());
        }
        assert_eq!(given.len(), 1, "all are told the same: {given:?}");
    }
    drop(nodes);
    let ask = |sql| server().psql("names", &[sql]);
    // What a connection has done is counted when it ends.
    let others = "select count(*) from pg_stat_activity where datname = 'names' and pid <> pg_backend_pid()";
    while ask(others).trim() != "0" {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(ask("select count(*), max(no) - min(no) + 1 from users").trim(), "150\t150", "numbers are dense");
    let inserted = ask("select n_tup_ins from pg_stat_user_tables where relname = 'users'");
    assert_eq!(inserted.trim(), "150", "those that failed count too");
}

/// Each with some names of its own and some that others have too, in an order of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_name_feeds_at_once_agree_on_their_numbers() {
    const CALLS: usize = 8;
    let url = server().database("feeds");
    let nodes = [Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let calls: Vec<_> = (0..CALLS)
        .map(|n| {
            let node = nodes[n % 2].clone();
            let shared = (0..4).map(|k| format!("shared{}", (n * 3 + k) % 5));
            let names: Vec<_> = shared.chain([format!("of{n}")]).map(Into::into).collect();
            tokio::spawn(async move { names.iter().cloned().zip(node.intern_feeds(&names).await.unwrap()).collect() })
        })
        .collect();
    let mut given: HashMap<_, FeedId> = HashMap::new();
    for call in calls {
        let answered: Vec<_> = call.await.unwrap();
        for (name, id) in answered {
            assert_eq!(*given.entry(name).or_insert(id), id, "a name has one number");
        }
    }
    let dense: Vec<FeedId> = (0..=u16::try_from(given.len()).unwrap()).map(FeedId).collect();
    assert_eq!((given.len(), nodes[1].feeds().await.unwrap()), (CALLS + 5, dense));
    let again = open(&url).await;
    let (names, ids): (Vec<_>, Vec<_>) = given.into_iter().unzip();
    assert_eq!(again.intern_feeds(&names).await.unwrap(), ids, "for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_another_payload_with_the_same_id_on_another_node_is_refused() {
    let nodes = nodes("conflict").await;
    for round in 0..30 {
        let tries: Vec<_> = (0..2)
            .map(|n| {
                // Different authors: no row that both lock.
                let mut wanted = post(&format!("author{n}"), &round.to_string());
                wanted.id = Some(ItemId(round));
                let node = nodes[n].clone();
                tokio::spawn(async move { write(&node, Write::Publish(wanted)).await })
            })
            .collect();
        let mut answers = vec![];
        for attempt in tries {
            answers.push(attempt.await.unwrap());
        }
        let refused = answers.iter().filter(|answer| **answer == Err(Refused::IdTaken(ItemId(round)))).count();
        let accepted = answers.iter().filter(|a| matches!(a, Ok(Written::Published { fresh: true, .. }))).count();
        assert_eq!((accepted, refused), (1, 1), "{answers:?}");
    }
}

/// Every batch names all authors and readers, and no two batches name them in one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_mixed_batches_of_two_nodes_leave_dense_outboxes_and_never_block_each_other() {
    const AUTHORS: usize = 5;
    const ROUNDS: usize = 12;
    let nodes = nodes("batches").await;
    let seen = nodes[0].clone();
    let names: Vec<_> = (0..AUTHORS).map(|n| user(&format!("u{n}"))).collect();
    let authors = seen.intern(&names).await.unwrap();
    let writers: Vec<_> = (0..6)
        .map(|writer: usize| {
            let node = nodes[writer % 2].clone();
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let turn = |n: usize| format!("u{}", (n * (1 + writer % 4) + round) % AUTHORS);
                    let mut batch = vec![];
                    for n in 0..AUTHORS {
                        batch.push(Write::Publish(post(&turn(n), &format!("{writer}/{round}/{n}"))));
                        let (reader, author) = (user(&turn(n + 1)), user(&turn(n)));
                        batch.push(match (writer + round) % 2 {
                            0 => Write::Follow { reader, author },
                            _ => Write::Unfollow { reader, author },
                        });
                    }
                    for answer in node.write(batch, NOW).await.unwrap() {
                        answer.unwrap();
                    }
                }
            })
        })
        .collect();
    // Meanwhile heads are served: nothing may appear at or below one later.
    let watcher = tokio::spawn({
        let authors = authors.clone();
        async move {
            let mut served = vec![vec![]; AUTHORS];
            for _ in 0..60 {
                for (author, served) in authors.iter().zip(&mut served) {
                    let outbox = seen.outbox(*author, 0, 10_000).await.unwrap();
                    assert_eq!(outbox.records.len() as u64, outbox.head, "dense up to the head");
                    assert!(outbox.records.starts_with(served), "and never another below it");
                    *served = outbox.records;
                }
            }
        }
    });
    for writer in writers {
        writer.await.unwrap();
    }
    watcher.await.unwrap();
    let mut records = 0;
    for author in authors {
        let outbox = nodes[1].outbox(author, 0, 10_000).await.unwrap();
        assert!(outbox.records.iter().map(|record| record.seq).eq(1..=outbox.head));
        records += outbox.records.len();
    }
    assert_eq!(records, 6 * ROUNDS * AUTHORS);
}

/// A push that was past a record before it could see the edge has skipped the reader for good: the edge must not begin
/// before that record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i4_an_edge_begins_at_or_behind_every_head_that_was_served_before_it() {
    let [publisher, follower] = nodes("edges").await;
    let star = publisher.intern(&[user("star")]).await.unwrap()[0];
    let publishing = tokio::spawn({
        let publisher = publisher.clone();
        async move {
            for n in 0..400 {
                write(&publisher, Write::Publish(post("star", &n.to_string()))).await.unwrap();
            }
        }
    });
    let mut followers = 0;
    while !publishing.is_finished() {
        let reader = user(&format!("r{followers}"));
        let no = follower.intern(std::slice::from_ref(&reader)).await.unwrap()[0];
        let following = tokio::spawn({
            let follower = follower.clone();
            async move { write(&follower, follow(reader.as_str(), "star")).await }
        });
        let mut served = 0;
        let edge = loop {
            let head = publisher.outbox(star, 0, 1).await.unwrap().head;
            let edge = publisher.edge(no, star).await.unwrap();
            if edge.on {
                break edge;
            }
            served = head;
        };
        assert!(edge.from >= served, "from {} although {served} was served before the edge", edge.from);
        let answer = following.await.unwrap();
        assert!(matches!(answer, Ok(Written::Edge { edge: told, .. }) if told == edge), "{answer:?}");
        followers += 1;
    }
    publishing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_be_carried_out_fails_alone() {
    let [node, _] = nodes("alone").await;
    let calls: Vec<_> = (0..64)
        .map(|n| {
            let node = node.clone();
            let mut wanted = post("ann", &n.to_string());
            // PostgreSQL's text cannot hold it.
            wanted.kind = (n % 16 == 5).then(|| "\0".into());
            tokio::spawn(async move { (n, node.write(vec![Write::Publish(wanted)], NOW).await) })
        })
        .collect();
    for call in calls {
        let (n, answer) = call.await.unwrap();
        assert_eq!(answer.is_ok(), n % 16 != 5, "{n}: {answer:?}");
    }
    let author = node.intern(&[user("ann")]).await.unwrap()[0];
    assert_eq!(node.outbox(author, 0, 100).await.unwrap().records.len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_of_two_nodes_never_go_back() {
    let nodes = nodes("epochs").await;
    let mut last = None;
    for n in 0..40 {
        let next = nodes[n % 2].next_epoch().await.unwrap();
        assert!(Some(next) > last, "{next:?} after {last:?}");
        last = Some(next);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_costs_a_few_round_trips_however_long_it_is() {
    let proxy = Proxy::before(server().port()).await;
    // One connection: its statements are prepared once.
    let options = Options { max_connections: 1, buckets: 16, ..Options::default() };
    let node = PostgresArchive::connect(&proxy.url(&server().database("batch")), options).await.unwrap();
    let publishes = |size: usize, call: &str| -> Vec<Write> {
        let publish = |n: usize| Publish {
            idempotency_key: Some(format!("{call}{n}").into()),
            ..post(&format!("u{}", n % 10), &n.to_string())
        };
        (0..size).map(|n| Write::Publish(publish(n))).collect()
    };
    let follows = |size: usize| -> Vec<Write> { (0..size).map(|n| follow(&format!("u{n}"), "star")).collect() };
    // Names, and the statements.
    node.write(follows(1000), NOW).await.unwrap();
    node.write(publishes(10, "first"), NOW).await.unwrap();
    let undone: Vec<Write> =
        (0..1000).map(|n| Write::Unfollow { reader: user(&format!("u{n}")), author: user("star") }).collect();
    // At most eight of its own. The connection may be tried before. Three statements sweep behind the first call: each
    // is prepared, and then carried out.
    for batch in [undone, publishes(1000, "second"), follows(1000)] {
        let before = proxy.round_trips();
        let answers = node.write(batch, NOW).await.unwrap();
        assert!(answers.iter().all(Result::is_ok));
        let trips = proxy.round_trips() - before;
        assert!(trips <= 8 + 1 + 6, "{trips} round trips for {} operations", answers.len());
    }
    let due = node.outstanding(None, i64::MAX, 5000).await.unwrap();
    let events: Vec<Event> = due.into_iter().map(|line| line.event).collect();
    assert_eq!(events.len(), 10 + 1000);
    let before = proxy.round_trips();
    node.finish(&events).await.unwrap();
    assert!(proxy.round_trips() - before <= 4);
    assert_eq!(node.outstanding(None, i64::MAX, 5000).await.unwrap(), []);
}

#[tokio::test]
async fn one_relay_at_a_time_may_publish_until_its_lease_has_run_out() {
    let [one, other] = nodes("relays").await;
    let long = Duration::from_secs(3600);
    assert!(one.may_publish("1", long).await.unwrap());
    assert!(!other.may_publish("2", long).await.unwrap(), "the other one waits");
    assert!(one.may_publish("1", Duration::ZERO).await.unwrap(), "who has the lease may ask again");
    assert!(other.may_publish("2", long).await.unwrap(), "it has run out");
    assert!(!one.may_publish("1", long).await.unwrap());
}
