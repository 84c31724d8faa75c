//! Rows that later writes remove, because nobody can see them any more.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use feedgate_common::archive::{Comments, Names, Reactions, Write, Writes, Written};
use feedgate_common::around::{CommentWrite, NewComment, Reaction};
use feedgate_common::{Body, Millis};
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
    let left = async || {
        let mut rows = vec![];
        for table in ["reactions", "comments", "talks", "reaction_ends"] {
            rows.push(execute(&url, &format!("SELECT FROM {table}")).await);
        }
        rows
    };
    archive.write(vec![Write::Delete { item: items[0], if_version: None }], NOW).await.unwrap();
    assert_eq!(left().await, [2, 2, 2, 1]);
    // A write is answered before the sweep behind it.
    let mut rows = vec![];
    for n in 1..=WRITES {
        archive.write(vec![follow("bob", "ann")], LATER + n * APART).await.unwrap();
        rows = left().await;
        if rows == [1, 1, 1, 0] {
            break;
        }
    }
    assert_eq!(rows, [1, 1, 1, 0]);
}
