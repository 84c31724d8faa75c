//! Tests of which authors wait, which were joined, and up to which number was asked.

use feedgate_common::archive::{Publish, Write};
use feedgate_common::change::Class;
use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds};
use feedgate_common::import::Import;
use feedgate_common::{Body, InboxKey, ItemId};
use feedgate_embedded::Embedded;

use super::*;
use crate::node::fixture;

fn head(author: u32, pull_seq: PullSeq) -> PullHead {
    PullHead { pull_seq, author: UserNo(author) }
}

fn from(asked: PullSeq) -> State {
    State { asked: Some(asked), ..State::default() }
}

#[test]
fn an_author_waits_once_for_the_greatest_number() {
    let mut state = from(0);
    assert!(state.add(head(1, 3)) && state.add(head(1, 5)) && state.add(head(1, 4)));
    assert_eq!((state.next(), state.next()), (Some(head(1, 5)), None));
    assert!(!state.add(head(1, 5)), "it was joined for that");
    assert!(state.add(head(1, 6)));
}

#[test]
fn what_was_joined_is_not_joined_again_when_it_is_asked_for() {
    let mut state = from(2);
    assert!(!state.add(head(9, 2)), "that was asked for");
    state.add(head(1, 4));
    state.next();
    assert!(state.asked(&[head(2, 3), head(1, 4), head(3, 5)], None));
    assert_eq!((state.asked, state.joined.len(), state.waiting.len()), (Some(5), 0, 2));
    assert!(!state.add(head(1, 4)));
}

#[test]
fn a_join_that_failed_waits_again() {
    let mut state = from(0);
    state.add(head(1, 3));
    let taken = state.next().unwrap();
    state.put_back(taken);
    assert_eq!(state.next(), Some(head(1, 3)));
}

#[test]
fn i18_what_finds_no_room_is_not_asked_past() {
    let mut state = from(0);
    (1..=WAITING_MAX as u32).for_each(|author| assert!(state.add(head(author, author.into()))));
    let beyond = WAITING_MAX as u64 + 1;
    assert!(!state.add(head(0, beyond)), "there is no room");
    assert!(state.add(head(7, beyond)), "it has its place already");
    assert!(!state.asked(&[head(8, 8), head(0, beyond)], Some(beyond)));
    assert_eq!((state.asked, state.waiting.len()), (Some(8), WAITING_MAX));
    state.next();
    assert!(state.asked(&[head(0, beyond)], None));
    assert_eq!(state.asked, Some(beyond));
}

/// Imports an item of this author with this id, which is history and no news.
fn history(author: &str, id: u64) -> Write {
    let publish = Publish {
        id: Some(ItemId(id)),
        published_at: Some(1),
        audience: Default::default(),
        ..Publish::new(author.parse().unwrap(), Body::parse("{}".to_owned()).unwrap())
    };
    Write::Import(Import::Item { publish, version: 1, deleted: false })
}

#[tokio::test]
async fn of_history_nobody_is_told_yet_whoever_reads_finds_it_and_what_comes_behind_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), 4).unwrap();
    let node = fixture::node(&stores, Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL));
    let authors: Vec<String> = (0..=ASKED).map(|n| format!("author{n}")).collect();
    let pull = |author: &String| Write::Classify { author: author.parse().unwrap(), class: Class::Pull };
    let follow = Write::Follow { reader: "ann".parse().unwrap(), author: authors[0].parse().unwrap() };
    stores.archive.write(authors.iter().map(pull).chain([follow]).collect(), 1).await.unwrap();
    let ann = stores.archive.intern(&["ann".parse().unwrap()]).await.unwrap()[0];
    let (pages, key) = (&node.reads.pages, InboxKey::main(ann));
    begin(&node).await;
    assert_eq!(pages.page(key, None, 9).await.unwrap().items.len(), 0);
    let before = node.reads.changes.head(key).await.unwrap();

    let lines = authors.iter().zip(1..).map(|(author, id)| history(author, id));
    stores.archive.write(lines.collect(), 2).await.unwrap();
    ask_once(&node).await.unwrap();
    assert!(node.reads.changes.head(key).await.unwrap() > before, "a device that is only notified finds it too");
    let page = pages.page(key, None, 9).await.unwrap();
    assert_eq!(page.items.iter().map(|item| item.id).collect::<Vec<_>>(), [ItemId(1)]);
    assert_eq!(node.hot.next(), None, "nobody is told");

    // The first of many more authors by their numbers; the items of all but the last are history.
    let Write::Import(Import::Item { publish, .. }) = history("author1", 10_000) else { panic!() };
    let lines = authors.iter().zip(1_000..).map(|(author, id)| history(author, id));
    stores.archive.write(lines.chain([Write::Publish(publish)]).collect(), 3).await.unwrap();
    ask_once(&node).await.unwrap();
    let author = stores.archive.intern(&["author1".parse().unwrap()]).await.unwrap()[0];
    assert_eq!(node.hot.next().map(|head| head.author), Some(author));
}
