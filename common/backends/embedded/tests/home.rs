//! A data directory as a whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use feedgate_common::archive::{Publish, Write, Written};
use feedgate_common::feed::{Changes, Feeds};
use feedgate_common::jobs::Job;
use feedgate_common::sessions::Claim;
use feedgate_common::{Body, InboxKey, Millis, StoreError, UserId, UserNo};
use feedgate_conformance::inboxes::InboxesExt as _;
use feedgate_embedded::Embedded;

fn name(text: &str) -> UserId {
    text.parse().expect("a user id")
}

fn post(author: &str) -> Write {
    Write::Publish(Publish::new(name(author), Body::parse("1".to_owned()).expect("JSON")))
}

/// A process of its own would be more honest, but the lock is of the open file, not of the process.
#[tokio::test]
async fn a_directory_that_is_open_cannot_be_opened_again_and_the_error_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = Embedded::open(dir.path(), 2).unwrap();
    match Embedded::open(dir.path(), 2).map(drop) {
        Err(StoreError::Unavailable(why)) => {
            assert!(why.contains(&*dir.path().to_string_lossy()) && why.contains("in use"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    first.close().await.unwrap();
    drop(Embedded::open(dir.path(), 2).unwrap());
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    match Embedded::open(&file, 2).map(drop) {
        Err(StoreError::Unavailable(why)) => assert!(why.contains(&*file.to_string_lossy()), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn changes(stores: &Embedded) -> Changes {
    Changes::new(Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), 10)))
}

#[tokio::test]
async fn everything_is_where_it_was_after_closing_and_opening() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), 2).unwrap();
    let follow = Write::Follow { reader: name("r"), author: name("a") };
    stores.archive.write(vec![follow, post("a")], 1).await.unwrap();
    let [reader, author] = stores.archive.intern(&[name("r"), name("a")]).await.unwrap()[..] else { panic!("two") };
    let head = changes(&stores).head(InboxKey::main(reader)).await.unwrap();
    stores.close().await.unwrap();

    let stores = Embedded::open(dir.path(), 5).unwrap();
    assert_eq!(stores.inboxes.buckets(), 2, "a directory keeps the number it was made with");
    assert_eq!(stores.inboxes.heads(&[InboxKey::main(reader)]).await.unwrap(), [Some(head)]);
    let outstanding = stores.archive.outstanding(None, Millis::MAX, 9).await.unwrap();
    let jobs: BTreeSet<Job> = outstanding.into_iter().map(|line| line.event.into()).collect();
    assert_eq!(jobs, BTreeSet::from([Job::FanOut { author }, Job::Edge { reader, author }]), "all that the queue held");
}

#[tokio::test]
async fn i16_inboxes_that_were_lost_come_back_in_a_greater_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), 2).unwrap();
    let follow = Write::Follow { reader: name("r"), author: name("a") };
    let written = stores.archive.write(vec![post("a"), follow], 1).await.unwrap();
    let Ok(Written::Edge { reader, .. }) = written[1] else { panic!("{written:?}") };
    let key = InboxKey::main(reader);
    let before = changes(&stores).head(key).await.unwrap();
    stores.close().await.unwrap();
    std::fs::remove_dir_all(dir.path().join("inboxes")).unwrap();

    let stores = Embedded::open(dir.path(), 2).unwrap();
    let after = changes(&stores).head(key).await.unwrap();
    assert!(after.epoch > before.epoch, "{after:?} behind {before:?}");
    assert_eq!(after.offset, 1, "the post is there again");
}

#[tokio::test]
async fn i17_tokens_of_a_restarted_pool_are_greater_than_any_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut tokens = vec![];
    for connection in 0..3 {
        let stores = Embedded::open(dir.path(), 2).unwrap();
        let device = "d".parse().unwrap();
        let (user, node) = (UserNo(1), "n".to_owned());
        let claim = Claim { user, device, durable: true, node, connection, since: 1 };
        tokens.push(stores.sessions.claim(claim).await.unwrap().token);
        stores.close().await.unwrap();
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}
