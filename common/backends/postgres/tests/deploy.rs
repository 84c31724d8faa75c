//! A store of the version before: what it holds is there after the first start of this one, and nodes of that version go
//! on beside it. What they could do wrong to what is new, the tables refuse.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::borrow::Cow;

use feedgate_common::archive::{Author, Publish, Write, Written};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::{Archive, Body, InboxKey, Millis, Op, Progress, UserNo, Watermarks};
use server::{follow, open, open_with, post, server, user};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, Row, SqlSafeStr};

const NOW: Millis = 1_800_000_000_000;

/// Two readers follow an author who has posted twice; one of them no longer follows another.
const FILL: &str = "
INSERT INTO layout (buckets) VALUES (16);
UPDATE counters SET value = 4 WHERE name = 'users';
INSERT INTO users VALUES (1, 'ann'), (2, 'ben'), (3, 'rea'), (4, 'rob');
INSERT INTO authors (author, head, last_rank, last_item) VALUES (1, 2, 20, -2), (2, 0, NULL, NULL), (3, 0, NULL, NULL), (4, 0, NULL, NULL);
INSERT INTO readers VALUES (1, 0), (2, 0), (3, 3), (4, 1);
INSERT INTO records (author, seq, item, rank, at, op, route, lane) VALUES (1, 1, -3, 10, 10, 1, 1, 0), (1, 2, -2, 20, 20, 1, 1, 0);
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
VALUES (3, 1, 1, 1, 5, 1, 3, true), (3, 2, 3, 0, 7, 3, 3, false), (4, 1, 1, 1, 6, 2, 4, true);";

/// What a node of that version sends: a record it appends, and an edge it sets on.
const APPEND: &str = "
WITH moved AS (UPDATE authors SET head = 3 WHERE author = 1)
INSERT INTO records (author, seq, op, route, lane, rank, item, at, deleted_by) VALUES (1, 3, 1, 1, 0, 30, -1, 30, NULL)";
const FOLLOW: &str = "
WITH counted AS (UPDATE readers SET counter = 4 WHERE reader = 3)
INSERT INTO edges AS e (reader, author, bucket, is_on, generation, from_seq, since, due, listed)
VALUES (3, 2, 3, true, 4, 0, 40, 40, nextval('follows'))
ON CONFLICT (reader, author) DO UPDATE
SET is_on = excluded.is_on, generation = excluded.generation, from_seq = excluded.from_seq,
    listed = excluded.listed, since = excluded.since, due = coalesce(e.due, excluded.due)";
const EDIT: &str = "
INSERT INTO records (author, seq, op, route, lane, rank, item, at, deleted_by) VALUES (1, 9, 2, 2, 0, 30, -1, 30, NULL)";

/// A database with the tables of the version before, filled.
async fn before(name: &str) -> (String, PgConnection) {
    let url = server().database(name);
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let sql = include_str!("../migrations/0001_archive.sql").into_sql_str();
    let first = Migration::new(1, Cow::Borrowed("archive"), MigrationType::Simple, sql, false);
    let migrator = Migrator::with_migrations(vec![first]);
    migrator.run_direct(None, &mut connection, false).await.unwrap();
    connection.execute(FILL).await.unwrap();
    (url, connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_version_before_holds_is_there_after_the_first_start() {
    let (url, _) = before("upgrade").await;
    let archive = open_with(&url, 1).await;
    let (ann, rea) = (UserNo(1), UserNo(3));
    let wants = Author { class: Class::Auto, followers: 2, head: 2, everyone_since: None };
    assert_eq!(archive.author(ann).await.unwrap(), wants, "followers are counted");
    let following = archive.following(rea, None, 10).await.unwrap();
    let followers = archive.followers(ann, None, 10).await.unwrap();
    let names = |list: &[feedgate_common::archive::Follow]| -> Vec<_> {
        list.iter().map(|line| (line.user.as_str().to_owned(), line.since)).collect()
    };
    assert_eq!(names(&following), [("ann".to_owned(), 5)]);
    assert_eq!(names(&followers), [("rob".to_owned(), 6), ("rea".to_owned(), 5)]);
    let state = archive.build(InboxKey::main(rea), &[(ann, Progress::at(2))], 10, 10).await.unwrap();
    assert_eq!((state.adds.len(), state.taken, state.built_at), (2, Watermarks::default(), 3));
    // More than one follower: from now on the author is pulled.
    archive.write(vec![Write::Publish(post("ann", "new"))], NOW).await.unwrap();
    let news = archive.news(InboxKey::main(rea), state.taken, 10).await.unwrap();
    assert_eq!((news.entries.len(), news.upto.pull), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_the_version_before_goes_on_and_what_it_would_do_wrong_is_refused() {
    let (url, mut old) = before("beside").await;
    let archive = open(&url).await;
    let (ann, rea) = (UserNo(1), UserNo(3));
    old.execute(APPEND).await.unwrap();
    old.execute(FOLLOW).await.unwrap();
    assert_eq!(archive.outbox(ann, 2, 10).await.unwrap().records.len(), 1);
    assert_eq!(archive.followees(rea).await.unwrap(), [ann, UserNo(2)]);
    assert_eq!(archive.following(rea, None, 10).await.unwrap().len(), 2);
    let refused = old.execute(EDIT).await.unwrap_err().to_string();
    assert!(refused.contains("records_pulled"), "{refused}");
    let mute = Write::Shield { user: user("rea"), other: user("ben"), shield: Shield::Mute, up: true };
    archive.write(vec![mute], NOW).await.unwrap();
    let refused = old.execute(FOLLOW).await.unwrap_err().to_string();
    assert!(refused.contains("edges_shielded"), "{refused}");
    archive.write(vec![follow("rob", "ben")], NOW).await.unwrap();
    assert_eq!(archive.followees(rea).await.unwrap(), [ann], "nothing of what was refused has happened");
}

/// What it looks for when it edits and deletes; what it pushes; what its pages and rebuilds show.
const OLD_LOOK: &str = "SELECT route FROM items WHERE author = 1";
const OLD_OUTBOX: &str = "SELECT op FROM records WHERE author = 1 AND seq > 2 ORDER BY seq LIMIT 10";
const OLD_PAGE: &str = "SELECT seq FROM records WHERE author = 1 AND op = 1 AND deleted_by IS NULL ORDER BY seq";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_of_a_named_feed_a_node_of_the_version_before_neither_shows_nor_pushes_nor_changes() {
    let (url, mut old) = before("named").await;
    let archive = open(&url).await;
    let likes = archive.intern_feeds(&["likes".into()]).await.unwrap()[0];
    let liked = Write::Publish(Publish { feed: likes, ..post("ann", "liked") });
    let Ok(Written::Published { id, .. }) = archive.write(vec![liked], NOW).await.unwrap().remove(0) else {
        panic!("it was refused")
    };
    let body = Body::parse("2".to_owned()).unwrap();
    archive.write(vec![Write::Edit { item: id, body, if_version: None }], NOW).await.unwrap();
    archive.write(vec![Write::Delete { item: id, if_version: None }], NOW).await.unwrap();
    let records = archive.outbox(UserNo(1), 2, 10).await.unwrap().records;
    let ops: Vec<_> = records.iter().map(|record| (record.op, record.feed)).collect();
    assert_eq!(ops, [Op::Add, Op::Update, Op::Delete].map(|op| (op, likes)));
    let mut numbers = async |sql| -> Vec<i64> {
        let read = old.fetch_all(sql).await.unwrap();
        read.iter().map(|row| row.try_get::<i16, _>(0).map_or_else(|_| row.get(0), i64::from)).collect()
    };
    assert_eq!(numbers(OLD_LOOK).await, [-1], "it knows 1 and 2, and gives up at any other");
    assert_eq!(numbers(OLD_OUTBOX).await, [-1, -2, -3], "it knows 1 to 3, and gives up at any other");
    assert_eq!(numbers(OLD_PAGE).await, [1, 2]);
}
