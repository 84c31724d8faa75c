//! What is pulled and what is addressed, written by several nodes at the same moment and asked for by many readers.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod proxy;
mod server;

use std::sync::Arc;

use feedgate_common::archive::{Audience, Content, Names, News, Outboxes, Publish, PullHead, Status, Write, Writes};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::import::Import;
use feedgate_common::{Entry, FeedId, InboxKey, ItemId, Millis, StoreError, UserNo, Watermarks};
use feedgate_postgres::{Options, PostgresArchive};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use proxy::Proxy;
use server::{execute, follow, open, post, server, terminate, user};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, Row};
use tokio::task::unconstrained;

const NOW: Millis = 1_800_000_000_000;

const ALL: usize = 100_000;

async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().unwrap();
    options.connect().await.unwrap()
}

/// The number that a statement answers.
async fn ask(url: &str, sql: &'static str) -> i64 {
    connect(url).await.fetch_one(sql).await.unwrap().get(0)
}

async fn pulled(archive: &PostgresArchive, reader: UserNo) -> News {
    archive.news(InboxKey::main(reader), Watermarks::default(), ALL).await.unwrap()
}

/// Everything of one kind, so that it locks in every order there could be.
fn batch(writer: usize, round: usize) -> Vec<Write> {
    let turn = |n: usize| format!("u{}", (n * (1 + writer % 3) + round + writer) % 5);
    let mut batch = vec![];
    for n in 0..5 {
        let (one, other) = (turn(n), turn(n + 1));
        batch.push(Write::Publish(post(&one, &format!("{writer}/{round}/{n}"))));
        let to = Audience::Users(vec![user(&other), user(&turn(n + 2))]);
        batch.push(Write::Publish(Publish { audience: to, ..post(&one, "to you") }));
        let up = (writer + round).is_multiple_of(2);
        batch.push(Write::Shield { user: user(&other), other: user(&one), shield: Shield::Block, up });
        let (reader, author) = (user(&one), user(&other));
        batch.push(if up { Write::Follow { reader, author } } else { Write::Unfollow { reader, author } });
        let class = [Class::Pull, Class::Push, Class::Auto][(writer + round + n) % 3];
        batch.push(Write::Classify { author: user(&one), class });
    }
    batch
}

/// A reader that has seen a number has seen all below it: what was read once is the beginning of what is read later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_what_two_nodes_number_is_dense_in_commit_order_and_never_blocks_them() {
    const WRITERS: usize = 6;
    const ROUNDS: usize = 12;
    let url = server().database("numbers");
    let nodes = [Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let follows: Vec<Write> = (0..5).map(|n| follow("rea", &format!("u{n}"))).collect();
    nodes[0].write(follows, NOW).await.unwrap();
    let reader = nodes[0].intern(&[user("rea")]).await.unwrap()[0];
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let node = nodes[writer % 2].clone();
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    for answer in node.write(batch(writer, round), NOW).await.unwrap() {
                        answer.unwrap();
                    }
                }
            })
        })
        .collect();
    let writing = tokio::spawn(join_all(writers));
    let mut seen: Vec<Entry> = vec![];
    while !writing.is_finished() {
        for node in &nodes {
            let news = pulled(node, reader).await;
            assert_eq!(news.entries.len() as u64, news.upto.pull, "dense, for the reader follows all of them");
            assert!(news.entries.starts_with(&seen), "and none appears below one that was seen");
            seen = news.entries;
        }
    }
    for written in writing.await.unwrap() {
        written.unwrap();
    }
    let news = pulled(&nodes[1], reader).await;
    assert_eq!((news.upto.pull, news.entries.len() as u64), (nodes[0].pull_head().await.unwrap(), news.upto.pull));
    assert!(news.upto.pull > 0 && (news.upto.pull as usize) < WRITERS * ROUNDS * 5, "both routes were taken");
    drop(nodes);
    // A connection reports what befell it when it ends.
    while ask(&url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").await > 1 {
        terminate(&url).await;
    }
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(ask(&url, deadlocks).await, 0, "locks are taken in one order");
}

/// A node of one connection, whose number is not that of `other`'s among the rows in which followers are counted.
async fn counts_apart(url: &str, other: Option<&PostgresArchive>) -> PostgresArchive {
    const APART: &str = "SELECT (count(pid) - count(DISTINCT pid % 16))::bigint FROM pg_stat_activity
                         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let options = Options { max_connections: 1, buckets: 16, ..Options::default() };
    loop {
        let node = PostgresArchive::connect(url, options).await.unwrap();
        node.ping().await.unwrap();
        if other.is_none() || ask(url, APART).await == 0 {
            return node;
        }
    }
}

/// The one has counted its follow, and waits for the shields before it can commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_does_not_wait_for_another_follow_of_the_same_author() {
    let url = server().database("counts");
    let one = counts_apart(&url, None).await;
    let other = counts_apart(&url, Some(&one)).await;
    let numbers = one.intern(&["star", "ann", "ben"].map(user)).await.unwrap();
    other.intern(&["star", "ann", "ben"].map(user)).await.unwrap();
    let mut held = connect(&url).await;
    held.execute("BEGIN; LOCK TABLE shields IN SHARE MODE").await.unwrap();
    let shield = Write::Shield { user: user("ann"), other: user("ben"), shield: Shield::Mute, up: true };
    let waits = one.write(vec![follow("ann", "star"), shield], NOW);
    let goes = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while ask(&url, waiting).await == 0 {}
        let answers = other.write(vec![follow("ben", "star")], NOW).await;
        assert_eq!(other.author(numbers[0]).await.unwrap().followers, 1, "only that of the other is committed");
        held.execute("COMMIT").await.unwrap();
        answers
    };
    let (waited, went) = tokio::join!(waits, goes);
    assert!(went.unwrap().iter().chain(&waited.unwrap()).all(Result::is_ok));
    assert_eq!(other.author(numbers[0]).await.unwrap().followers, 2);
}

/// What nobody is told of wakes nobody, whichever feed it is in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_moves_no_head_of_an_author_who_is_pulled() {
    let node = open(&server().database("heads")).await;
    let star = node.intern(&[user("star")]).await.unwrap()[0];
    let likes = node.intern_feeds(&["likes".into()]).await.unwrap()[0];
    let heads = async |write: Write| {
        node.write(vec![write], NOW).await.unwrap().remove(0).unwrap();
        node.pull_heads(0, 10).await.unwrap()
    };
    let old = |text: &str, feed| {
        let publish = Publish { feed, id: Some(ItemId(text.len() as u64)), ..post("star", text) };
        Write::Import(Import::Item { publish, version: 1, deleted: false })
    };
    assert_eq!(heads(Write::Classify { author: user("star"), class: Class::Pull }).await, []);
    assert_eq!(heads(old("old", FeedId::MAIN)).await, []);
    assert_eq!(heads(Write::Publish(post("star", "new"))).await, [PullHead { pull_seq: 2, author: star }]);
    assert_eq!(heads(old("older", likes)).await, [PullHead { pull_seq: 2, author: star }]);
    let liked = Publish { feed: likes, ..post("star", "liked") };
    assert_eq!(heads(Write::Publish(liked)).await, [PullHead { pull_seq: 4, author: star }]);
}

type Call<'a> = BoxFuture<'a, Result<News, StoreError>>;

/// Makes the call, which waits.
fn make(archive: &PostgresArchive, key: InboxKey) -> Call<'_> {
    let mut call = archive.news(key, Watermarks::default(), 100);
    assert!(unconstrained(&mut call).now_or_never().is_none());
    call
}

/// A lock on the table holds statements back until all the calls wait. On one thread, all of them wait before the first
/// statement is sent, whatever the pace of the machine.
#[tokio::test]
async fn readers_who_are_woken_at_once_share_a_few_statements_and_each_gets_their_own_news() {
    const READERS: usize = 100;
    let proxy = Proxy::before(server().port()).await;
    let url = server().database("woken");
    let options = Options { max_connections: 1, buckets: 16, ..Options::default() };
    let node = PostgresArchive::connect(&proxy.url(&url), options).await.unwrap();
    let names: Vec<_> = (0..READERS).map(|n| user(&format!("r{n}"))).collect();
    let readers = node.intern(&names).await.unwrap();
    let mut writes = vec![Write::Classify { author: user("star"), class: Class::Pull }];
    writes.extend(names.iter().step_by(2).map(|reader| follow(reader.as_str(), "star")));
    writes.push(Write::Publish(post("star", "hello")));
    let to = Audience::Users(names.iter().step_by(3).cloned().collect());
    writes.push(Write::Publish(Publish { audience: to, ..post("ann", "to you") }));
    let likes = node.intern_feeds(&["likes".into()]).await.unwrap()[0];
    writes.push(Write::Publish(Publish { feed: likes, ..post("star", "liked") }));
    let to = Audience::Users(names.iter().step_by(5).cloned().collect());
    writes.push(Write::Publish(Publish { feed: likes, audience: to, ..post("ann", "liked yours") }));
    node.write(writes, NOW).await.unwrap();
    pulled(&node, readers[0]).await;
    let mut held = connect(&url).await;
    held.execute("BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let before = proxy.round_trips();
    let keys = readers.iter().flat_map(|&reader| [FeedId::MAIN, likes].map(|feed| InboxKey { reader, feed }));
    let calls: Vec<Call> = keys.map(|key| make(&node, key)).collect();
    held.execute("COMMIT").await.unwrap();
    for (at, news) in join_all(calls).await.into_iter().enumerate() {
        let (news, n) = (news.unwrap(), at / 2);
        let direct: Vec<bool> = news.entries.iter().map(Entry::is_direct).collect();
        let every = [3, 5][at % 2];
        let wants: Vec<bool> = [(2, false), (every, true)]
            .into_iter()
            .filter(|(every, _)| n % every == 0)
            .map(|(_, direct)| direct)
            .collect();
        let addressed = u64::from(n % 3 == 0) + u64::from(n % 5 == 0);
        assert_eq!((direct, news.upto.pull, news.upto.direct), (wants, 2, addressed), "reader {n}, feed {}", at % 2);
    }
    let trips = proxy.round_trips() - before;
    assert!(trips <= 8, "{trips} round trips for two feeds of {READERS} readers");
    assert_eq!(execute(&url, "SELECT 1 FROM direct").await, (READERS.div_ceil(3) + READERS.div_ceil(5)) as u64);
}
