//! Lists whose lines share a number: pages show each line once.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::collections::BTreeSet;

use feedgate_common::UserId;
use feedgate_common::archive::{Follow, Graph, ListCursor, Names, Write, Writes};
use feedgate_common::import::{Import, Place};
use server::{execute, open, server, user};

const NOW: i64 = 1_800_000_000_000;

/// An import of everything that a team has often gives many follows one time. The number of a line is that time and the
/// last 22 bits of a count.
#[tokio::test]
async fn i7_pages_of_a_list_show_each_line_once_where_lines_share_a_number() {
    let url = server().database("ties");
    let archive = open(&url).await;
    for (reader, author) in
        [("ann", "bea"), ("ann", "cat"), ("ann", "dee"), ("bea", "ann"), ("cat", "ann"), ("dee", "ann")]
    {
        execute(&url, "SELECT setval('follows', 4194304 * (1 + (SELECT count(*) FROM edges)))").await;
        let follow = Import::Follow { reader: user(reader), author: user(author), since: NOW, from: Place::Head };
        archive.write(vec![Write::Import(follow)], NOW).await.unwrap().remove(0).unwrap();
    }
    let ann = archive.user_nos(&[user("ann")]).await.unwrap()[0].unwrap();
    let all: BTreeSet<UserId> = ["bea", "cat", "dee"].map(user).into();
    assert_eq!(execute(&url, "SELECT DISTINCT listed FROM edges").await, 1, "all lines share a number");
    let archive = &archive;
    assert_eq!(by_ones(async |cursor| archive.following(ann, cursor, 1).await.unwrap()).await, all);
    assert_eq!(by_ones(async |cursor| archive.followers(ann, cursor, 1).await.unwrap()).await, all);
    assert_eq!(by_ones(async |cursor| archive.mutual(ann, cursor, 1).await.unwrap()).await, all);
}

/// The users of a list that is read by pages of one line, each of them once.
async fn by_ones(page: impl AsyncFn(Option<ListCursor>) -> Vec<Follow>) -> BTreeSet<UserId> {
    let (mut cursor, mut users) = (None, BTreeSet::new());
    while let Some(line) = page(cursor).await.pop() {
        cursor = Some(line.cursor);
        assert!(users.insert(line.user), "no line comes twice");
    }
    users
}
