//! What is answered while the server, or the network before it, fails; and that it is the truth.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod proxy;
mod server;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use feedgate_common::archive::{Items, Names, Outboxes, OwnPosts, Publish, Search, Status, Write, Writes, Written};
use feedgate_common::search::TextFields;
use feedgate_common::{ItemId, Millis, StoreError};
use feedgate_engines::Postgres;
use feedgate_postgres::PostgresArchive;
use proxy::Proxy;
use server::{execute, open, post, server, terminate, user};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor};
use tokio::time::Instant;

const NOW: Millis = 1_800_000_000_000;

fn keyed(writer: usize, n: usize) -> Publish {
    let key = format!("{writer}-{n}");
    Publish { idempotency_key: Some(key.as_str().into()), ..post(&format!("author{writer}"), &key) }
}

async fn publish(archive: &PostgresArchive, wanted: Publish) -> Result<(ItemId, u64, bool), StoreError> {
    match archive.write(vec![Write::Publish(wanted)], NOW).await?.remove(0) {
        Ok(Written::Published { id, outbox_seq, fresh, .. }) => Ok((id, outbox_seq, fresh)),
        other => panic!("never a refusal: {other:?}"),
    }
}

/// Asks until it is answered.
async fn publish_at_last(archive: &PostgresArchive, wanted: &Publish) -> (ItemId, u64, bool) {
    loop {
        match publish(archive, wanted.clone()).await {
            Ok(accepted) => return accepted,
            Err(StoreError::Unavailable(_) | StoreError::Overloaded { .. }) => tokio::task::yield_now().await,
            Err(error @ (StoreError::Misconfigured(_) | StoreError::Down(_) | StoreError::Corrupt(_))) => {
                panic!("{error}")
            }
        }
    }
}

/// Four writers publish, each asking again until it is answered, until told to stop and then once more; what they were
/// told.
struct Writers {
    stop: Arc<AtomicBool>,
    accepted: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Vec<(ItemId, u64, bool)>>>,
}

impl Writers {
    fn start(archive: &Arc<PostgresArchive>) -> Self {
        let (stop, accepted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let writer = |writer: usize| {
            let (archive, stop, accepted) = (archive.clone(), stop.clone(), accepted.clone());
            tokio::spawn(async move {
                let mut told = vec![];
                while !stop.load(Ordering::SeqCst) {
                    told.push(publish_at_last(&archive, &keyed(writer, told.len())).await);
                    accepted.fetch_add(1, Ordering::SeqCst);
                }
                told
            })
        };
        let tasks = (0..4).map(writer).collect();
        Self { stop, accepted, tasks }
    }

    /// Until so many more are accepted.
    async fn accept(&self, more: usize) {
        let wanted = self.accepted.load(Ordering::SeqCst) + more;
        while self.accepted.load(Ordering::SeqCst) < wanted {
            tokio::task::yield_now().await;
        }
    }

    /// Everything that was accepted is there, once, where it was said to be, and nothing else is.
    async fn check(self, archive: &PostgresArchive) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            let told = task.await.unwrap();
            let ids: Vec<ItemId> = told.iter().map(|(id, ..)| *id).collect();
            let items = archive.items(&ids).await.unwrap();
            for ((id, seq, _), item) in told.iter().zip(&items) {
                let item = item.as_ref().unwrap_or_else(|| panic!("item {id} was accepted and is not there"));
                assert_eq!(item.outbox_seq, *seq);
            }
            let author = items[0].as_ref().unwrap().author_no;
            let outbox = archive.outbox(author, 0, 100_000).await.unwrap();
            assert!(outbox.records.iter().map(|record| record.key.item).eq(ids), "each once, in order");
            assert_eq!(outbox.head, told.len() as u64);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_backends_terminated_under_writes_leave_no_false_accept() {
    let url = server().database("terminated");
    let archive = Arc::new(open(&url).await);
    let writers = Writers::start(&archive);
    for _ in 0..5 {
        writers.accept(20).await;
        assert!(terminate(&url).await > 0);
    }
    writers.accept(20).await;
    writers.check(&archive).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_a_killed_server_accepts_nothing_falsely_and_is_used_again_once_it_is_back() {
    let mut server = Postgres::start();
    let url = server.database("killed");
    let archive = Arc::new(open(&url).await);
    let writers = Writers::start(&archive);
    for _ in 0..2 {
        writers.accept(40).await;
        server.kill();
        let down = loop {
            // What was under way may still have been answered, and the machine may be slow: once at least.
            let asked = Instant::now();
            match archive.ping().await {
                // An outage is answered, not waited for.
                Err(error) if asked.elapsed() < Duration::from_secs(6) => break error,
                _ => tokio::task::yield_now().await,
            }
        };
        assert!(matches!(&down, StoreError::Unavailable(why) if why.contains("PostgreSQL")), "{down}");
        server.restart();
    }
    writers.accept(40).await;
    archive.ping().await.unwrap();
    writers.check(&archive).await;
}

/// VACUUM, or the build of an index, holds such a lock for as long as it runs. All writes would queue behind who waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_locks_a_whole_table_for_a_setting_gives_up_at_once_while_the_table_is_cleaned_up() {
    let url = server().database("cleaned");
    let archive = open(&url).await;
    archive.write(vec![Write::Publish(post("ann", "x"))], 1).await.unwrap()[0].clone().unwrap();
    let mut holder = url.parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
    holder.execute("BEGIN; LOCK TABLE items, authors IN SHARE UPDATE EXCLUSIVE MODE").await.unwrap();
    let fields = TextFields::new(vec!["text".into()]).unwrap();
    // A slow machine may be late, but not each time.
    let mut soonest = [Duration::MAX; 2];
    for _ in 0..3 {
        for (nth, soonest) in soonest.iter_mut().enumerate() {
            let began = Instant::now();
            let done = match nth {
                0 => archive.index_of(Some(&fields)).await,
                _ => archive.set_own_posts(true).await,
            };
            assert!(matches!(done, Err(StoreError::Unavailable(_))), "{done:?}");
            *soonest = began.elapsed().min(*soonest);
        }
    }
    assert!(soonest.iter().all(|soonest| *soonest < Duration::from_secs(2)), "{soonest:?}");
    holder.execute("COMMIT").await.unwrap();
    archive.index_of(Some(&fields)).await.unwrap();
    archive.set_own_posts(true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_has_become_a_standby_is_not_read_from() {
    let mut server = Postgres::start();
    let archive = open(&server.database("demoted")).await;
    archive.ping().await.unwrap();
    server.stop();
    fs::write(server.directory().join("data/standby.signal"), "").unwrap();
    server.restart();
    let refused = archive.ping().await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Misconfigured(why) if why.to_string().contains("is a standby")),
        "{refused}"
    );
    assert!(archive.intern(&[user("ann")]).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_a_lost_reply_to_a_commit_is_no_refusal_and_a_retry_gets_the_same_item() {
    let proxy = Proxy::before(server().port()).await;
    let archive = open(&proxy.url(&server().database("lost"))).await;
    publish(&archive, keyed(0, 0)).await.unwrap();
    for n in 1..4 {
        proxy.lose_replies_to_commits(true);
        let lost = publish(&archive, keyed(0, n)).await.unwrap_err();
        assert!(matches!(&lost, StoreError::Unavailable(why) if why.contains("may or may not")), "{lost}");
        proxy.lose_replies_to_commits(false);
        let (_, seq, fresh) = publish(&archive, keyed(0, n)).await.unwrap();
        assert_eq!((seq, fresh), (n as u64 + 1, false), "it had happened");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_goes_silent_is_answered_within_seconds() {
    let proxy = Proxy::before(server().port()).await;
    let archive = Arc::new(open(&proxy.url(&server().database("silent"))).await);
    publish(&archive, keyed(0, 0)).await.unwrap();
    proxy.set_silent(true);
    // Once at least: the machine may be slow.
    while calls_into_silence(&archive).await > Duration::from_secs(7) {}
    proxy.set_silent(false);
    publish(&archive, keyed(0, 1)).await.unwrap();
}

/// How long they take, each of which fails.
async fn calls_into_silence(archive: &Arc<PostgresArchive>) -> Duration {
    let asked = Instant::now();
    // More than there are connections.
    let calls: Vec<_> = (0..40)
        .map(|n| {
            let archive = archive.clone();
            tokio::spawn(async move {
                match n % 3 {
                    0 => archive.ping().await,
                    1 => archive.items(&[ItemId(n as u64)]).await.map(drop),
                    _ => publish(&archive, keyed(1, n)).await.map(drop),
                }
            })
        })
        .collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
    asked.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_only_reads_refuses_writes_and_names_the_setting() {
    let url = server().database("readonly");
    let archive = open(&url).await;
    publish(&archive, keyed(0, 0)).await.unwrap();
    execute(&url, "ALTER DATABASE readonly SET default_transaction_read_only = on").await;
    terminate(&url).await;
    let error = publish(&archive, keyed(0, 1)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Misconfigured(why) if why.contains("primary")), "{error}");
    archive.ping().await.unwrap();
}
