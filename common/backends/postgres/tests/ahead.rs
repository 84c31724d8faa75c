//! What a worker reads to push what is new of an author, without a question to the inboxes.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use feedgate_common::archive::{
    Ahead, Event, Events, Names, Outboxes, PushDevice, PushDevices, Recipient, Write, Writes,
};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::{FeedId, Millis, OutboxSeq, UserNo};
use feedgate_postgres::PostgresArchive;
use futures_util::future::join_all;
use server::{execute, follow, open, post, server, user};

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

/// Publishes, and answers what is ahead, with the followers ascending. They are those that a read of them alone finds.
async fn ahead_of(archive: &PostgresArchive, author: &str) -> Ahead {
    publish(archive, author, &["new"]).await;
    let author = number(archive, author).await;
    let mut ahead = archive.ahead(author, ALL, ALL).await.unwrap().unwrap();
    ahead.recipients.sort_unstable_by_key(|recipient| recipient.reader);
    let readers: Vec<UserNo> = (0..100).map(UserNo).collect();
    let found = archive.recipients_among(author, &readers).await.unwrap();
    let edges =
        |of: &[_]| of.iter().map(|to: &Recipient| (to.reader, to.generation, to.from, to.listens)).collect::<Vec<_>>();
    assert_eq!(edges(&ahead.recipients), edges(&found));
    ahead
}

/// An Archive with an author whom `r1`, `r2` and `r3` follow, and whose first record is finished.
async fn followed(url: &str) -> PostgresArchive {
    let archive = open(url).await;
    for reader in ["r1", "r2", "r3"] {
        write(&archive, follow(reader, "ann")).await;
    }
    publish(&archive, "ann", &["1"]).await;
    let ann = number(&archive, "ann").await;
    finish(&archive, ann, 1, 0).await;
    archive
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_are_read_again_only_after_something_has_changed_of_them() {
    let url = server().database("ahead_kept");
    let archive = followed(&url).await;
    let (phone, ann) = ("phone".parse().unwrap(), number(&archive, "ann").await);
    let r1 = number(&archive, "r1").await;
    let device =
        PushDevice { device: phone, platform: "fcm".into(), token: "t".into(), feeds: vec![FeedId::MAIN], since: NOW };
    let shield = |shield, up| Write::Shield { user: user("r2"), other: user("ann"), shield, up };
    assert!(!ahead_of(&archive, "ann").await.kept);
    assert!(ahead_of(&archive, "ann").await.kept);
    for change in [
        follow("r4", "ann"),
        Write::Unfollow { reader: user("r3"), author: user("ann") },
        follow("r3", "ann"),
        shield(Shield::Mute, true),
        shield(Shield::Mute, false),
        shield(Shield::Block, true),
        shield(Shield::Block, false),
        Write::OwnPosts { author: user("ann"), on: true },
        Write::OwnPosts { author: user("ann"), on: false },
    ] {
        let what = format!("{change:?}");
        write(&archive, change).await;
        assert!(!ahead_of(&archive, "ann").await.kept, "{what}");
        assert!(ahead_of(&archive, "ann").await.kept, "after {what} nothing has changed");
    }
    PushDevices::register(&archive, r1, device.clone()).await.unwrap();
    assert!(!ahead_of(&archive, "ann").await.kept, "a reader listens");
    PushDevices::register(&archive, r1, PushDevice { token: "u".into(), ..device.clone() }).await.unwrap();
    assert!(ahead_of(&archive, "ann").await.kept, "a reader who listens has another token");
    archive.unregister(r1, &device.device, None).await.unwrap();
    assert!(!ahead_of(&archive, "ann").await.kept, "a reader listens no more");
    write(&archive, follow("r1", "bob")).await;
    write(&archive, follow("ann", "bob")).await;
    assert!(ahead_of(&archive, "ann").await.kept, "that was about another author");
    archive.all_recipients(ann, ALL).await.unwrap();
    assert!(!ahead_of(&archive, "ann").await.kept, "somebody reads them in another way");
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_that_a_program_of_the_version_before_changes_are_read_again() {
    let url = server().database("ahead_before");
    let archive = followed(&url).await;
    let ann = number(&archive, "ann").await.0;
    let r4 = number(&archive, "r4").await.0;
    ahead_of(&archive, "ann").await;
    for (sql, read) in [
        (
            format!(
                "INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
                  VALUES ({r4}, {ann}, 1, 0, 0, 99, {r4} % 16, true)"
            ),
            true,
        ),
        (format!("UPDATE edges SET due = NULL, quiet = true WHERE author = {ann}"), false),
        (format!("UPDATE edges SET from_seq = 1 WHERE author = {ann} AND reader = {r4}"), true),
        (format!("UPDATE edges SET generation = 2, is_on = false WHERE author = {ann} AND reader = {r4}"), true),
        (format!("DELETE FROM edges WHERE author = {ann} AND reader = {r4}"), true),
        ("UPDATE readers SET counter = counter + 1".to_owned(), false),
        ("UPDATE readers SET listens = true".to_owned(), true),
        ("UPDATE readers SET listens = true".to_owned(), false),
    ] {
        execute(&url, &sql).await;
        assert_eq!(!ahead_of(&archive, "ann").await.kept, read, "{sql}");
        assert!(ahead_of(&archive, "ann").await.kept, "after {sql} nothing has changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i16_no_number_of_a_state_is_given_twice_though_followers_are_counted_again() {
    let url = server().database("ahead_counted");
    let archive = followed(&url).await;
    ahead_of(&archive, "ann").await;
    assert!(ahead_of(&archive, "ann").await.kept);
    let recount = "DELETE FROM follower_counts;
         INSERT INTO follower_counts SELECT author, 0, count(*) FROM edges WHERE is_on GROUP BY author";
    for reader in ["r4", "r5", "r6", "r7"] {
        execute(&url, recount).await;
        write(&archive, follow(reader, "ann")).await;
        assert!(!ahead_of(&archive, "ann").await.kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_followers_are_answered_than_are_asked_for_and_none_of_a_part_is_kept() {
    let archive = followed(&server().database("ahead_part")).await;
    publish(&archive, "ann", &["2"]).await;
    let ann = number(&archive, "ann").await;
    for (asked, found, kept) in [(2, 2, false), (3, 3, false), (4, 3, false), (4, 3, true), (2, 2, true)] {
        let ahead = archive.ahead(ann, ALL, asked).await.unwrap().unwrap();
        assert_eq!((ahead.recipients.len(), ahead.kept), (found, kept), "{asked}");
    }
}
