//! A store that the version before has left.

#![allow(clippy::unwrap_used, reason = "what fails says where")]

use std::path::Path;

use feedgate_common::archive::{Archive, Edge, Follow, Publish, Write, Written};
use feedgate_common::change::{Class, Route};
use feedgate_common::graph::Shield;
use feedgate_common::{Body, FeedId, InboxKey, Op, UserId, UserNo, Watermarks};
use feedgate_embedded::codec::Code;
use feedgate_embedded::table::{Space, Table};
use feedgate_embedded::view::Read;
use feedgate_embedded::{Database, Durability, EmbeddedArchive};

/// Bytes as they are.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl Code for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self(std::mem::take(from).to_vec()))
    }
}

struct Raw<const TAG: u8>;

impl<const TAG: u8> Table for Raw<TAG> {
    const SPACE: Space = Space::Archive;
    const TAG: u8 = TAG;
    const NAME: &'static str = "raw";
    type Key = Bytes;
    type Row = Bytes;
}

/// Makes the rows of a table end where they ended before.
async fn shorten<const TAG: u8>(db: &Database, by: usize) {
    let rows: Vec<(Bytes, Bytes)> = db.view().unwrap().scan::<Raw<TAG>>(..).map(Result::unwrap).collect();
    assert!(!rows.is_empty());
    let write = move |tx: &mut feedgate_embedded::view::Tx<'_>| {
        for (key, mut row) in rows {
            row.0.truncate(row.0.len() - by);
            tx.put::<Raw<TAG>>(&key, &row);
        }
        Ok(())
    };
    db.write(Durability::Synced, write).await.unwrap();
}

/// Puts the lines of one list where they stood before: at the generation of their edge. `side` is where the key of an edge
/// holds whose list it is.
async fn list_by_generation<const TAG: u8>(db: &Database, side: usize) {
    let edges: Vec<(Bytes, Bytes)> = db.view().unwrap().scan::<Raw<b'e'>>(..).map(Result::unwrap).collect();
    let write = move |tx: &mut feedgate_embedded::view::Tx<'_>| {
        for (Bytes(edge), Bytes(row)) in edges {
            let (whose, generation, listed) = (&edge[side..side + 4], &row[1..9], &row[row.len() - 17..row.len() - 9]);
            let (now, before) = (Bytes([whose, listed].concat()), Bytes([whose, generation].concat()));
            if let Some(line) = tx.get::<Raw<TAG>>(&now)? {
                tx.remove::<Raw<TAG>>(&now);
                tx.put::<Raw<TAG>>(&before, &line);
            }
        }
        Ok(())
    };
    db.write(Durability::Synced, write).await.unwrap();
}

/// Lists, counters, authors, records, adds and edges as they were, and nothing that says they have grown.
async fn as_before(dir: &Path) {
    let db = Database::open(dir).unwrap();
    list_by_generation::<b'g'>(&db, 0).await;
    list_by_generation::<b'h'>(&db, 4).await;
    shorten::<b'0'>(&db, 8 + 2).await;
    shorten::<b'a'>(&db, 1 + 4 * 8).await;
    shorten::<b'r'>(&db, 2 + 1).await;
    shorten::<b'd'>(&db, 8).await;
    shorten::<b'e'>(&db, 1 + 8 + 1 + 8).await;
    let forget = |tx: &mut feedgate_embedded::view::Tx<'_>| {
        tx.remove::<Raw<b'3'>>(&Bytes(vec![]));
        Ok(())
    };
    db.write(Durability::Synced, forget).await.unwrap();
}

async fn open(dir: &Path) -> EmbeddedArchive {
    EmbeddedArchive::open(Database::open(dir).unwrap(), 16).await.unwrap().with_pull_above(2)
}

fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

fn follow(reader: &str, author: &str) -> Write {
    Write::Follow { reader: user(reader), author: user(author) }
}

fn unfollow(reader: &str, author: &str) -> Write {
    Write::Unfollow { reader: user(reader), author: user(author) }
}

fn post(author: &str) -> Write {
    Write::Publish(Publish::new(user(author), Body::parse("1".to_owned()).unwrap()))
}

/// All that the version before could have been asked about a reader and an author.
async fn seen(archive: &EmbeddedArchive, reader: UserNo, author: UserNo) -> String {
    let edge = archive.edge(reader, author).await.unwrap();
    let following = archive.following(reader, None, 10).await.unwrap();
    let followers = archive.followers(author, None, 10).await.unwrap();
    let names = |lines: Vec<Follow>| lines.into_iter().map(|line| (line.user, line.since)).collect::<Vec<_>>();
    let (following, followers) = (names(following), names(followers));
    let feed = archive.feed_below(InboxKey::main(reader), None, None, 10, 10).await.unwrap();
    let (due, counts) = (archive.outstanding(None, 99, 99).await.unwrap(), archive.counts().await.unwrap());
    format!("{edge:?} {following:?} {followers:?} {feed:?} {due:?} {counts:?}")
}

/// What stands in an outbox of before, what is said of it now, and what goes to a feed of now.
async fn all_is_of_the_main_feed_until_others_are_named(archive: &EmbeddedArchive, author: UserNo) {
    assert_eq!(archive.feeds().await.unwrap(), [FeedId::MAIN]);
    let [likes] = archive.intern_feeds(&["likes".into()]).await.unwrap()[..] else { panic!("one") };
    let Write::Publish(publish) = post("ann") else { panic!("a post") };
    let old = archive.profile(author, FeedId::MAIN, None, 10).await.unwrap();
    let Some(first) = old.last() else { panic!("ann has posted before") };
    let writes = vec![
        Write::Edit { item: first.item, body: publish.body.clone(), if_version: None },
        Write::Publish(Publish { feed: likes, ..publish }),
        Write::Delete { item: first.item, if_version: None },
    ];
    archive.write(writes, 4).await.unwrap().into_iter().for_each(|written| drop(written.unwrap()));
    let records = archive.outbox(author, 0, 10).await.unwrap().records;
    let feeds = records.iter().map(|record| (record.op, record.feed)).collect::<Vec<_>>();
    let (main, likes_add) = (FeedId::MAIN, (Op::Add, likes));
    assert_eq!(feeds, [(Op::Add, main), (Op::Add, main), (Op::Update, main), likes_add, (Op::Delete, main)]);
    assert_eq!(archive.profile(author, main, None, 10).await.unwrap(), old[..1]);
    assert_eq!(archive.profile(author, likes, None, 10).await.unwrap(), [records[3].key]);
}

#[tokio::test]
async fn a_store_of_the_version_before_opens_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path()).await;
    let before = vec![
        follow("r1", "ann"),
        post("ann"),
        follow("r2", "ann"),
        unfollow("r2", "ann"),
        follow("r2", "ann"),
        follow("r3", "ann"),
        unfollow("r3", "ann"),
        follow("r1", "ben"),
        post("ben"),
    ];
    archive.write(before, 1).await.unwrap();
    let names = ["r1", "r2", "r3", "ann", "ben"].map(user);
    let [r1, r2, r3, ann, ben] = archive.intern(&names).await.unwrap()[..] else { panic!("five") };
    let pairs = [(r1, ann), (r2, ann), (r3, ann), (r1, ben), (ann, ben)];
    let mut told = vec![];
    for (reader, author) in pairs {
        told.push(seen(&archive, reader, author).await);
    }
    drop(archive);
    as_before(dir.path()).await;

    let archive = open(dir.path()).await;
    for ((reader, author), told) in pairs.into_iter().zip(told) {
        assert_eq!(seen(&archive, reader, author).await, told);
    }
    for (author, followers) in [(ann, 2), (ben, 1), (r1, 0)] {
        let known = archive.author(author).await.unwrap();
        assert_eq!((known.followers, known.class), (followers, Class::Auto));
    }
    // A third follower, and ann is pulled; a shield under which the old line of the list stands; its end.
    let now = vec![
        follow("r3", "ann"),
        post("ann"),
        Write::Shield { user: user("r1"), other: user("ann"), shield: Shield::Mute, up: true },
    ];
    archive.write(now, 2).await.unwrap();
    let records = archive.outbox(ann, 0, 10).await.unwrap().records;
    assert_eq!(records.iter().map(|record| record.route).collect::<Vec<_>>(), [Route::Push, Route::Pull]);
    for (reader, pulled) in [(r1, 0), (r2, 1), (r3, 1)] {
        let news = archive.news(InboxKey::main(reader), Watermarks::default(), 10).await.unwrap();
        assert_eq!((news.entries.len(), news.upto.pull), (pulled, 1));
    }
    let followed = async |reader| {
        let lines = archive.following(reader, None, 10).await.unwrap();
        lines.into_iter().map(|line| (line.user.to_string(), line.since)).collect::<Vec<_>>()
    };
    let both = [("ben".to_owned(), 1), ("ann".to_owned(), 1)];
    assert_eq!(followed(r1).await, both, "the mute changes no list");
    let ended = archive.write(vec![unfollow("r1", "ann"), unfollow("r1", "ben")], 3).await.unwrap();
    let off = |answer: &_| matches!(answer, Ok(Written::Edge { edge: Edge { on: false, .. }, fresh: true, .. }));
    assert!(ended.iter().all(off), "{ended:?}");
    assert_eq!(followed(r1).await, []);
    assert_eq!(archive.followers(ann, None, 10).await.unwrap().len(), 2);
    all_is_of_the_main_feed_until_others_are_named(&archive, ann).await;
    drop(archive);
    assert_eq!(open(dir.path()).await.author(ann).await.unwrap().followers, 2);
}
