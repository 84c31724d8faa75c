//! The look at a database finds each damage that it is for, and finds nothing in a store that is used.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use feedgate_common::Body;
use feedgate_common::archive::{Audience, Comments, Names, Publish, PushDevice, PushDevices, Reactions, Write, Writes};
use feedgate_common::archive::{Search, Written};
use feedgate_common::around::{CommentWrite, NewComment, Reaction};
use feedgate_common::graph::Shield;
use feedgate_common::search::TextFields;
use feedgate_common::{FeedId, ItemId, StoreError};
use feedgate_postgres::doctor;
use server::{execute, follow, open, post, server, user};

const NOW: i64 = 1_800_000_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_twice_does_not_end_a_round_of_indexing() {
    let url = server().database("due_twice");
    let archive = open(&url).await;
    let fields = TextFields::new(vec!["text".into()]).unwrap();
    archive.index_of(Some(&fields)).await.unwrap();
    while archive.index(Some(&fields)).await.unwrap() {}
    execute(&url, "INSERT INTO search_due (subject, id) SELECT 0, n / 2 FROM generate_series(1, 401) n").await;
    assert!(archive.index(Some(&fields)).await.unwrap(), "half of it is still due");
}

/// Makes a store with something of everything: items 1 (published by user 1, with a reaction and a comment of user 2),
/// 2 (deleted) and 3 (a repost of 1, addressed to user 2), two followers, and a block.
async fn used(url: &str) {
    let archive = open(url).await;
    let fields = TextFields::new(vec!["text".into()]).unwrap();
    archive.index_of(Some(&fields)).await.unwrap();
    while archive.index(Some(&fields)).await.unwrap() {}
    let item = |id| Publish { id: Some(ItemId(id)), ..post("ann", "hello") };
    let (audience, repost_of) = (Audience::Users(vec![user("bob")]), Some(ItemId(1)));
    let direct = Publish { audience, repost_of, ..item(3) };
    let block = Write::Shield { user: user("eve"), other: user("ann"), shield: Shield::Block, up: true };
    let writes = vec![Write::Publish(item(1)), Write::Publish(item(2)), follow("bob", "ann"), follow("cid", "ann")];
    let body = || Some(Body::parse(r#"{"text":"edited"}"#.to_owned()).unwrap());
    let edit = Write::Edit { item: ItemId(1), body: body(), rank: None, mentions: None, if_version: None };
    let more = vec![edit, Write::Delete { item: ItemId(2), if_version: None }, Write::Publish(direct), block];
    for written in archive.write([writes, more].concat(), NOW).await.unwrap() {
        assert!(!matches!(written.unwrap(), Written::Published { fresh: false, .. }));
    }
    let [_, bob] = archive.intern(&[user("ann"), user("bob")]).await.unwrap()[..] else { panic!("two users") };
    let (item, kind) = (ItemId(1), "like".parse().unwrap());
    archive.react(&[Reaction { item, kind, user: bob, at: NOW }]).await.unwrap();
    let body = Body::parse("{}".to_owned()).unwrap();
    let new = NewComment { item, author: bob, reply_to: None, body, id: None, key: None, past: None, mentions: vec![] };
    archive.comment(vec![CommentWrite::Make(new)], NOW).await.unwrap();
    let device = PushDevice {
        device: "d".parse().unwrap(),
        platform: "fcm".into(),
        token: "t".into(),
        feeds: vec![FeedId::MAIN],
        since: NOW,
    };
    PushDevices::register(&archive, bob, device).await.unwrap();
    while archive.index(Some(&fields)).await.unwrap() {}
}

/// What breaks a store, and the check that finds it. The column of an item's id has its sign bit flipped.
const DAMAGES: [(&str, &str); 37] = [
    ("names of users", "UPDATE counters SET value = value + 1 WHERE name = 'users'"),
    (
        "names of users",
        "DELETE FROM users WHERE name = 'cid'; UPDATE counters SET value = value - 1 WHERE name = 'users'",
    ),
    ("items", "UPDATE items SET seq = 7 WHERE id = 1 + (-9223372036854775808)"),
    ("items", "UPDATE items SET body = null WHERE id = 1 + (-9223372036854775808)"),
    ("items", "UPDATE items SET body = '{}' WHERE id = 2 + (-9223372036854775808)"),
    ("outboxes", "UPDATE authors SET head = head + 1 WHERE head > 0"),
    ("outboxes", "DELETE FROM records WHERE seq = 2"),
    ("outboxes", "DELETE FROM items WHERE id = 2 + (-9223372036854775808)"),
    ("outboxes", "UPDATE records SET deleted_by = 1 WHERE deleted_by IS NOT NULL"),
    ("what is addressed to readers", "UPDATE readers SET direct = 0"),
    ("what is addressed to readers", "DELETE FROM items WHERE route = 0"),
    ("what is addressed to readers", "UPDATE items SET body = null WHERE route = 0"),
    ("edges", "UPDATE edges SET bucket = bucket + 1 WHERE is_on"),
    ("edges", "UPDATE readers SET counter = 0"),
    ("edges", "UPDATE edges SET from_seq = 9 WHERE is_on"),
    ("edges", "UPDATE authors SET own_edge = true"),
    ("edges", "UPDATE edges SET asked = true WHERE is_on"),
    ("edges", "UPDATE edges SET asked = true WHERE shields & 12 <> 0"),
    ("edges", "UPDATE authors SET private = true, everyone_since = 0, class = 3"),
    ("edges", "DELETE FROM shields"),
    ("edges", "UPDATE edges SET shields = 0 WHERE shields > 0"),
    ("follower counts", "UPDATE follower_counts SET followers = followers + 1"),
    ("follower counts", "DELETE FROM edges WHERE is_on"),
    ("reactions", "DELETE FROM reactions"),
    ("reactions", "UPDATE reactions SET item = 2 + (-9223372036854775808)"),
    ("comments", "UPDATE talks SET count = 0"),
    ("comments", "UPDATE comments SET replies = 1"),
    ("reposts", "UPDATE repost_counts SET count = count + 1"),
    ("reposts", "DELETE FROM repost_counts"),
    ("reposts", "UPDATE items SET repost_of = NULL"),
    ("versions of items", "UPDATE item_versions SET version = 9"),
    ("versions of items", "UPDATE item_versions SET item = 2 + (-9223372036854775808)"),
    (
        "versions of items",
        "INSERT INTO item_versions SELECT item, -n, 0, body FROM item_versions, generate_series(1, 20) n",
    ),
    ("lines of notifications", "INSERT INTO line_members VALUES (1, 1, 'k', 1, '{}')"),
    ("audiences", "INSERT INTO audiences VALUES (1 + (-9223372036854775808), '{1}')"),
    ("push notices", "UPDATE readers SET listens = false"),
    ("the index of search", "DELETE FROM search_marks"),
];

#[tokio::test]
async fn each_check_finds_its_damage_and_a_used_store_has_none() {
    let url = server().database("doctored");
    used(&url).await;
    let report = doctor::check(&url).await.unwrap();
    assert!(report.is_sound(), "{report:#?}");
    assert_eq!((report.outstanding, report.oldest), (4, Some(NOW)), "an outbox, two edges, and a reader");
    for (nth, (name, damage)) in DAMAGES.into_iter().enumerate() {
        let copy = format!("damaged_{nth}");
        server().psql("postgres", &[&format!("create database {copy} template doctored")]);
        let url = url.replace("doctored", &copy);
        execute(&url, damage).await;
        let report = doctor::check(&url).await.unwrap();
        let found = report.checks.iter().find(|check| check.name == name).unwrap();
        assert!(found.wrong > 0 && !found.findings.is_empty(), "{damage}: {report:#?}");
    }
}

#[tokio::test]
async fn a_database_of_another_version_or_without_tables_is_refused() {
    let url = server().database("empty_one");
    let refused = async |url: &str| match doctor::check(url).await {
        Err(StoreError::Misconfigured(why)) => why.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(&url).await.contains("has no tables of Feedgate"));
    drop(open(&url).await);
    execute(&url, "DELETE FROM _sqlx_migrations WHERE version > 2").await;
    let why = refused(&url).await;
    assert!(why.contains("the tables have version 2,") && why.contains("as it starts"), "{why}");
    // No start of this version takes tables back to it.
    execute(&url, "UPDATE _sqlx_migrations SET version = 900 WHERE version = 1").await;
    let why = refused(&url).await;
    assert!(why.contains("version 900 of a later program") && !why.contains("as it starts"), "{why}");
    assert!(refused("http://nowhere").await.contains("postgres://"));
}
