//! Reactions to a hot item that tell its author: they share transactions, so that they hold a few connections only.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::sync::Arc;

use feedgate_common::archive::{Names, Notifications, Write, Writes, Written};
use feedgate_common::around::Reaction;
use feedgate_common::notify::{Notified, Rules, Way};
use feedgate_common::{FeedId, UserId};
use server::{execute, open, post, server};

const NOW: i64 = 1_800_000_000_000;

const USERS: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_reactions_that_come_together_tell_the_author_in_a_few_transactions() {
    let url = server().database("notified");
    let archive = Arc::new(open(&url).await);
    let reaction = Some(Way { kind: "like".into(), feed: FeedId::MAIN, grouped: false });
    archive.notify_by(Rules { reaction, ..Rules::default() });
    let published = archive.write(vec![Write::Publish(post("ann", "hot"))], NOW).await.unwrap().remove(0);
    let Ok(Written::Published { id: item, author: ann, .. }) = published else { panic!("{published:?}") };
    let names: Vec<UserId> = (0..USERS).map(|n| format!("user-{n}").parse().unwrap()).collect();
    let users = archive.intern(&names).await.unwrap();
    let tasks = users.into_iter().map(|user| {
        let archive = archive.clone();
        tokio::spawn(async move {
            let reaction = Reaction { item, kind: "heart".parse().unwrap(), user, at: NOW };
            archive.react_and_notify(&[reaction], true).await.unwrap()
        })
    });
    for task in Vec::from_iter(tasks) {
        assert_eq!(task.await.unwrap(), Notified { answers: vec![Ok(true)], told: vec![ann] });
    }
    assert_eq!(execute(&url, "SELECT FROM direct WHERE op = 1").await, 1000, "each is told once");
    let transactions = execute(&url, "SELECT DISTINCT xmin::text FROM direct").await;
    assert!(transactions <= 100, "{transactions} transactions");
}
