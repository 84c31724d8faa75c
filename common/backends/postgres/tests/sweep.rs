//! Rows that are removed because nobody can see them any more, most of them by later writes.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use feedgate_common::archive::{Comments, Names, Notifications, Publish, Reactions, Write, Writes, Written};
use feedgate_common::around::{CommentWrite, NewComment, Reaction};
use feedgate_common::notify::{Rules, Way};
use feedgate_common::{Body, FeedId, ItemId, Millis};
use feedgate_postgres::PostgresArchive;
use server::{execute, follow, open, post, server, user};

/// Before any run of this test. The server's clock says when an item was deleted, so no sweep behind a write of this
/// time removes what stands around it.
const NOW: Millis = 1_600_000_000_000;

/// After any run of this test.
const LATER: Millis = 4_000_000_000_000;

/// Longer than two sweeps lie apart, in ms.
const APART: Millis = 10 * 60_000;

/// More writes than it takes until a sweep has run.
const WRITES: Millis = 100;

/// Writes some time later, again and again, until these tables have so many rows: a write is answered before the sweep
/// behind it.
async fn swept<const N: usize>(archive: &PostgresArchive, url: &str, tables: [&str; N], wanted: [u64; N]) {
    let mut rows = [0; N];
    for n in 1..=WRITES {
        archive.write(vec![follow("bob", "ann")], LATER + n * APART).await.unwrap();
        rows = left(url, tables).await;
        if rows == wanted {
            break;
        }
    }
    assert_eq!(rows, wanted);
}

async fn left<const N: usize>(url: &str, tables: [&str; N]) -> [u64; N] {
    let mut rows = [0; N];
    for (rows, table) in rows.iter_mut().zip(tables) {
        *rows = execute(url, &format!("SELECT FROM {table}")).await;
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_s3_reactions_and_comments_of_a_deleted_item_are_removed_behind_later_writes_and_no_others() {
    let url = server().database("sweep");
    let archive = open(&url).await;
    let reader = archive.intern(&[user("bob")]).await.unwrap()[0];
    let mut items = vec![];
    for text in ["goes", "stays"] {
        let written = archive.write(vec![Write::Publish(post("ann", text))], NOW).await.unwrap().remove(0);
        let Ok(Written::Published { id: item, .. }) = written else { panic!("{written:?}") };
        let liked = [Reaction { item, kind: "like".parse().unwrap(), user: reader, at: NOW }];
        assert_eq!(archive.react(&liked).await.unwrap(), [Ok(true)]);
        let body = Body::parse("1".to_owned()).unwrap();
        let comment = NewComment {
            item,
            author: reader,
            reply_to: None,
            body,
            id: None,
            key: None,
            past: None,
            mentions: vec![],
        };
        assert!(archive.comment(vec![CommentWrite::Make(comment)], NOW).await.unwrap()[0].is_ok());
        items.push(item);
    }
    const TABLES: [&str; 4] = ["reactions", "comments", "talks", "reaction_ends"];
    archive.write(vec![Write::Delete { item: items[0], if_version: None }], NOW).await.unwrap();
    assert_eq!(left(&url, TABLES).await, [2, 2, 2, 1]);
    swept(&archive, &url, TABLES, [1, 1, 1, 0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_a_line_whose_item_was_deleted_is_removed_behind_later_writes_and_no_other() {
    const TABLES: [&str; 3] = ["lines", "line_members", "reaction_ends"];
    let url = server().database("lines");
    let archive = open(&url).await;
    let likes = Way { kind: "liked".into(), feed: FeedId::MAIN, grouped: true };
    archive.notify_by(Rules { reaction: Some(likes), ..Rules::default() });
    let [bob, cid] = archive.intern(&[user("bob"), user("cid")]).await.unwrap()[..] else { panic!("two numbers") };
    for author in ["ann", "dan"] {
        let written = archive.write(vec![Write::Publish(post(author, "liked"))], NOW).await.unwrap().remove(0);
        let Ok(Written::Published { id: item, .. }) = written else { panic!("{written:?}") };
        for user in [bob, cid] {
            let like = Reaction { item, kind: "like".parse().unwrap(), user, at: NOW };
            assert_eq!(archive.react_and_notify(&[like], true).await.unwrap().told.len(), 1);
        }
    }
    // Of each line the first item is deleted already, since another one has replaced it.
    assert_eq!(left(&url, TABLES).await, [2, 4, 2]);
    swept(&archive, &url, TABLES, [2, 4, 0]).await;
    let told = archive.line_members(None, 1).await.unwrap().remove(0).1.item;
    archive.write(vec![Write::Delete { item: told, if_version: None }], NOW).await.unwrap();
    assert_eq!(left(&url, TABLES).await, [2, 4, 2], "the item, and the line by its first one");
    swept(&archive, &url, TABLES, [1, 2, 0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_reposts_that_were_deleted_leave_no_counters() {
    const TABLES: [&str; 1] = ["repost_counts"];
    let url = server().database("counters");
    let archive = open(&url).await;
    let published = async |id: u64, repost_of| {
        let publish = Publish { id: Some(ItemId(id)), repost_of, ..post("ann", "x") };
        archive.write(vec![Write::Publish(publish)], NOW).await.unwrap().remove(0).unwrap();
        ItemId(id)
    };
    let original = published(1, None).await;
    let mut reposts = vec![];
    // The last one is counted in the row of the first one.
    for id in [32, 33, 64] {
        reposts.push(published(id, Some(original)).await);
    }
    for counters in [2, 2, 1, 0] {
        assert_eq!(left(&url, TABLES).await, [counters]);
        let Some(item) = reposts.pop() else { break };
        archive.write(vec![Write::Delete { item, if_version: None }], NOW).await.unwrap();
    }
}
