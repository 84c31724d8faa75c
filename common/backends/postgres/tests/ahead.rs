//! What a worker reads to push what is new of an author, without a question to the inboxes.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use feedgate_common::archive::{Ahead, Event, Events, Names, Outboxes, Write, Writes};
use feedgate_common::change::Class;
use feedgate_common::{Millis, OutboxSeq, UserNo};
use feedgate_postgres::PostgresArchive;
use futures_util::future::join_all;
use server::{follow, open, post, server, user};

const NOW: Millis = 1_800_000_000_000;

/// More than there are.
const ALL: usize = 100;

async fn write(archive: &PostgresArchive, write: Write) {
    archive.write(vec![write], NOW).await.unwrap().remove(0).unwrap();
}

async fn publish(archive: &PostgresArchive, author: &str, texts: &[&str]) {
    for text in texts {
        write(archive, Write::Publish(post(author, text))).await;
    }
}

async fn number(archive: &PostgresArchive, name: &str) -> UserNo {
    archive.intern(&[user(name)]).await.unwrap()[0]
}

/// Finishes the push of an author; answers the number under which it must be gone through again.
async fn finish(archive: &PostgresArchive, author: UserNo, seq: OutboxSeq, redo: u64) -> Option<u64> {
    let stay = archive.finish(&[Event::Outbox { author, seq, redo }]).await.unwrap();
    stay.first().map(|event| match event {
        Event::Outbox { redo, .. } => *redo,
        other => panic!("{other:?}"),
    })
}

/// The first record that is finished, the numbers of those ahead, and how many get them.
fn summary(ahead: &Ahead) -> (OutboxSeq, Vec<OutboxSeq>, usize) {
    (ahead.finished, ahead.outbox.records.iter().map(|record| record.seq).collect(), ahead.recipients.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ahead_begins_behind_what_is_finished_and_is_what_the_single_reads_answer() {
    let archive = open(&server().database("ahead")).await;
    for reader in ["r1", "r2", "r3"] {
        write(&archive, follow(reader, "ann")).await;
    }
    publish(&archive, "ann", &["1", "2", "3"]).await;
    let ann = number(&archive, "ann").await;
    assert_eq!(archive.ahead(ann, ALL, ALL).await.unwrap(), None, "no worker has said how far it is finished");
    finish(&archive, ann, 1, 0).await;
    let ahead = archive.ahead(ann, ALL, ALL).await.unwrap().unwrap();
    assert_eq!(summary(&ahead), (1, vec![2, 3], 3));
    assert_eq!(ahead.outbox, archive.outbox(ann, 1, ALL).await.unwrap());
    let mut recipients = ahead.recipients;
    recipients.sort_unstable_by_key(|recipient| recipient.reader);
    let readers: Vec<UserNo> = recipients.iter().map(|recipient| recipient.reader).collect();
    assert_eq!(recipients, archive.recipients_among(ann, &readers).await.unwrap());
    let some = archive.ahead(ann, 1, 2).await.unwrap().unwrap();
    assert_eq!((summary(&some), some.outbox.head), ((1, vec![2], 2), 3));
    finish(&archive, ann, 3, 0).await;
    assert_eq!(summary(&archive.ahead(ann, ALL, ALL).await.unwrap().unwrap()), (3, vec![], 0));
    finish(&archive, ann, 2, 0).await;
    publish(&archive, "ann", &["4"]).await;
    assert_eq!(summary(&archive.ahead(ann, ALL, ALL).await.unwrap().unwrap()), (3, vec![4], 3), "it never goes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_was_reopened_has_no_known_end_until_it_is_finished_again() {
    let archive = open(&server().database("ahead_reopened")).await;
    publish(&archive, "ann", &["1", "2"]).await;
    let ann = number(&archive, "ann").await;
    finish(&archive, ann, 1, 0).await;
    archive.reopen(&[ann]).await.unwrap();
    assert_eq!(archive.ahead(ann, ALL, ALL).await.unwrap(), None);
    let redo = finish(&archive, ann, 2, 0).await.expect("it is told");
    assert_eq!(archive.ahead(ann, ALL, ALL).await.unwrap(), None);
    assert_eq!(finish(&archive, ann, 2, redo).await, None);
    assert_eq!(summary(&archive.ahead(ann, ALL, ALL).await.unwrap().unwrap()), (2, vec![], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_are_read_only_for_records_that_are_pushed_and_each_of_many_authors_gets_its_own() {
    let archive = open(&server().database("ahead_many")).await;
    let names: Vec<String> = (0..70).map(|n| format!("a{n}")).collect();
    let mut authors = vec![];
    for (n, name) in names.iter().enumerate() {
        write(&archive, follow("rea", name)).await;
        if n % 2 == 0 {
            write(&archive, Write::Classify { author: user(name), class: Class::Pull }).await;
        }
        publish(&archive, name, &["0", "1"]).await;
        let author = number(&archive, name).await;
        finish(&archive, author, 1, 0).await;
        authors.push(author);
    }
    let all = join_all(authors.iter().map(|author| archive.ahead(*author, ALL, ALL))).await;
    for (n, (ahead, author)) in all.into_iter().zip(authors).enumerate() {
        let ahead = ahead.unwrap().unwrap();
        assert_eq!(summary(&ahead), (1, vec![2], n % 2), "{}", names[n]);
        assert_eq!(ahead.outbox, archive.outbox(author, 1, ALL).await.unwrap(), "{}", names[n]);
    }
}
