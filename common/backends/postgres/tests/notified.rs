//! Reactions to a hot item share transactions, so that they hold a few connections only, whether they tell its author
//! or not.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::sync::Arc;

use feedgate_common::archive::{Audience, Names, Notifications, Publish, Write, Writes, Written};
use feedgate_common::around::{Reaction, Unreacted};
use feedgate_common::notify::{Deed, Notified, Rules, Way};
use feedgate_common::{FeedId, ItemId, UserId, UserNo};
use feedgate_postgres::PostgresArchive;
use server::{execute, follow, open, post, server, terminate, user};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor};

const NOW: i64 = 1_800_000_000_000;

const USERS: usize = 1000;

/// On one thread all calls are made before the first group begins.
#[tokio::test]
async fn s1_reactions_that_come_together_tell_the_author_in_a_few_transactions() {
    let url = server().database("notified");
    let archive = Arc::new(open(&url).await);
    let reaction = Some(Way { kind: "like".into(), feed: FeedId::MAIN, grouped: false });
    archive.notify_by(Rules { reaction, ..Rules::default() });
    let (item, ann) = hot(&archive).await;
    for told in like_it_all_at_once(&archive, item).await {
        assert_eq!(told, Notified { answers: vec![Ok(true)], told: vec![ann] });
    }
    assert_eq!(execute(&url, "SELECT FROM direct WHERE op = 1").await, 1000, "each is told once");
    let transactions = execute(&url, "SELECT DISTINCT xmin::text FROM direct").await;
    assert!(transactions <= 100, "{transactions} transactions");
}

/// On one thread, as the test above.
#[tokio::test]
async fn s1_reactions_that_come_together_and_tell_nobody_take_a_few_transactions() {
    let url = server().database("untold");
    let archive = Arc::new(open(&url).await);
    let (item, _) = hot(&archive).await;
    for told in like_it_all_at_once(&archive, item).await {
        assert_eq!(told, Notified { answers: vec![Ok(true)], told: vec![] });
    }
    assert_eq!(execute(&url, "SELECT FROM reactions").await, 1000);
    let transactions = execute(&url, "SELECT DISTINCT xmin::text FROM reactions").await;
    assert!(transactions <= 100, "{transactions} transactions");
}

/// Each group gives and takes back at many counters of an item, which are new at first. Groups that make or lock these
/// in different orders wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn likes_that_are_given_and_taken_back_at_once_do_not_deadlock() {
    let url = server().database("taken_back");
    let archive = Arc::new(open(&url).await);
    let users = users(&archive).await;
    let (mut item, _) = hot(&archive).await;
    for round in 0..8 {
        if round % 2 == 0 {
            item = hot(&archive).await.0;
        }
        // Two neighbours give and take back the reaction of one of the two at the same time.
        let react = |user: UserNo| {
            let archive = archive.clone();
            let of = UserNo(user.0.next_multiple_of(2));
            let reaction = Reaction { item, kind: "heart".parse().unwrap(), user: of, at: NOW };
            let on = (user.0 + round).is_multiple_of(2);
            async move { archive.react_and_notify(&[reaction], on).await.unwrap() }
        };
        at_once(users.clone(), react).await;
    }
    drop(archive);
    terminate(&url).await;
    // The server counts what a connection did when the connection ends.
    let others = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while execute(&url, others).await > 0 {}
    let deadlocked = "SELECT FROM pg_stat_database WHERE datname = current_database() AND deadlocks > 0";
    assert_eq!(execute(&url, deadlocked).await, 0);
}

/// An item with the key of a notification comes while the call that takes the notification back waits for its locks.
/// The reader of the item is not among those whom the call knew to lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_takes_the_key_of_a_notification_meanwhile_damages_nothing() {
    let url = server().database("meanwhile");
    let archive = Arc::new(open(&url).await);
    let (bob, ann) = (user("bob"), user("ann"));
    // Nobody is told of this follow, so nothing has the key.
    archive.write(vec![follow("bob", "ann"), follow("carl", "dora")], NOW).await.unwrap();
    let way = Some(Way { kind: "follow".into(), feed: FeedId::MAIN, grouped: false });
    archive.notify_by(Rules { follow: way, ..Rules::default() });
    let number = archive.intern(std::slice::from_ref(&ann)).await.unwrap()[0];

    let options: PgConnectOptions = url.parse().unwrap();
    let mut held = options.connect().await.unwrap();
    let lock = format!("BEGIN; SELECT FROM authors WHERE author = {} FOR UPDATE", number.0);
    held.execute(sqlx::AssertSqlSafe(lock)).await.unwrap();
    let unfollowing = tokio::spawn({
        let (archive, unfollow) = (archive.clone(), Write::Unfollow { reader: bob.clone(), author: ann.clone() });
        async move { archive.write(vec![unfollow], NOW).await }
    });
    let waiting = "SELECT FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while execute(&url, waiting).await == 0 {}
    let key = Deed::Follow { author: &ann, actor: &bob, asks: false }.key();
    let to_carl = Audience::Users(vec![user("carl")]);
    let item = Publish { foreign_id: Some(key), audience: to_carl, ..post("dora", "an item") };
    archive.write(vec![Write::Publish(item)], NOW).await.unwrap().remove(0).unwrap();
    held.execute("COMMIT").await.unwrap();

    unfollowing.await.unwrap().unwrap().remove(0).unwrap();
}

/// An item of ann, with the number of her.
async fn hot(archive: &PostgresArchive) -> (ItemId, UserNo) {
    let published = archive.write(vec![Write::Publish(post("ann", "hot"))], NOW).await.unwrap().remove(0);
    let Ok(Written::Published { id, author, .. }) = published else { panic!("{published:?}") };
    (id, author)
}

/// Lets a thousand users react at the same time, who have come at the same time before. Answers what each call said.
async fn like_it_all_at_once(archive: &Arc<PostgresArchive>, item: ItemId) -> Vec<Notified<Result<bool, Unreacted>>> {
    at_once(users(archive).await, |user| {
        let archive = archive.clone();
        let reaction = Reaction { item, kind: "heart".parse().unwrap(), user, at: NOW };
        async move { archive.react_and_notify(&[reaction], true).await.unwrap() }
    })
    .await
}

/// The numbers of a thousand users.
async fn users(archive: &Arc<PostgresArchive>) -> Vec<UserNo> {
    let number = |n| {
        let (archive, name) = (archive.clone(), format!("user-{n}").parse::<UserId>().unwrap());
        async move { archive.intern(&[name]).await.unwrap()[0] }
    };
    at_once(0..USERS, number).await
}

/// Does something for each of these at the same time, and gives what came of it, in their order.
async fn at_once<T, F>(all: impl IntoIterator<Item = T>, each: impl Fn(T) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: Vec<_> = all.into_iter().map(|one| tokio::spawn(each(one))).collect();
    let mut done = vec![];
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}
