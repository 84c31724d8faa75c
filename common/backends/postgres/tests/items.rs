//! Reads of items that wait together: they share queries, and each gets what it would have got alone.
//!
//! A lock on the table holds queries back until all the calls of a test wait.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod proxy;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use feedgate_common::archive::{Items, Status, Write, Writes, Written};
use feedgate_common::{Body, Item, ItemId, Millis, StoreError};
use feedgate_postgres::{Options, PostgresArchive};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use proxy::Proxy;
use server::{execute, open, post, server, terminate};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor};
use tokio::task::unconstrained;

const NOW: Millis = 1_800_000_000_000;

type Call<'a> = BoxFuture<'a, Result<Vec<Option<Arc<Item>>>, StoreError>>;

async fn publish(archive: &PostgresArchive, text: &str) -> ItemId {
    match archive.write(vec![Write::Publish(post("ann", text))], NOW).await.unwrap().remove(0) {
        Ok(Written::Published { id, .. }) => id,
        other => panic!("{other:?}"),
    }
}

/// Until it commits, nobody reads items.
async fn hold(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    connection.execute("BEGIN; LOCK TABLE items IN ACCESS EXCLUSIVE MODE").await.unwrap();
    connection
}

/// Makes the call, which waits.
fn ask<'a>(archive: &'a PostgresArchive, ids: &'a [ItemId]) -> Call<'a> {
    let mut call = archive.items(ids);
    assert!(unconstrained(&mut call).now_or_never().is_none());
    call
}

/// One connection, which has its statement prepared, and what it costs from now on.
async fn counted(name: &str) -> (PostgresArchive, ItemId, String, Proxy) {
    let proxy = Proxy::before(server().port()).await;
    let url = server().database(name);
    let options = Options { max_connections: 1, buckets: 16, ..Options::default() };
    let archive = PostgresArchive::connect(&proxy.url(&url), options).await.unwrap();
    let item = publish(&archive, "hello").await;
    archive.items(&[item]).await.unwrap();
    (archive, item, url, proxy)
}

/// Those under way when the lock is released, and one with everything else. The connection may be tried besides, and
/// three statements sweep behind the first write: each is prepared, and then carried out.
const ROUND_TRIPS: usize = 4 + 1 + 1 + 6;

#[tokio::test]
async fn no_key_that_a_reader_asks_for_costs_a_connection() {
    let url = server().database("keys");
    let archive = open(&url).await;
    let connections = async || {
        let ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
        let mut watching = sqlx::ConnectOptions::connect(&options).await.unwrap();
        let mut pids: Vec<i32> = sqlx::query_scalar(ours).fetch_all(&mut watching).await.unwrap();
        pids.sort_unstable();
        pids
    };
    archive.ping().await.unwrap();
    let before = connections().await;
    for key in ["\0", "a\0b", "\u{1}", "\u{ffff}", &"x".repeat(100_000)] {
        assert_eq!(archive.item_by_foreign_id(key).await.unwrap(), None, "{key:?}");
    }
    assert_eq!(connections().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_many_read_at_once_costs_a_few_queries() {
    let (archive, item, url, proxy) = counted("many").await;
    let (asked, nothing) = ([ItemId(1), item, item], [ItemId(2)]);
    let before = proxy.round_trips();
    let mut held = hold(&url).await;
    let calls: Vec<Call> = (0..500).map(|n| ask(&archive, if n % 50 == 7 { &nothing } else { &asked })).collect();
    held.execute("COMMIT").await.unwrap();
    for (n, answer) in join_all(calls).await.into_iter().enumerate() {
        let found: Vec<_> = answer.unwrap().iter().map(|item| item.as_ref().map(|item| item.id)).collect();
        let right = if n % 50 == 7 { vec![None] } else { vec![None, Some(item), Some(item)] };
        assert_eq!(found, right, "call {n}");
    }
    let trips = proxy.round_trips() - before;
    assert!(trips <= ROUND_TRIPS, "{trips} round trips for 500 calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_go_away_leave_nothing_behind() {
    let (archive, item, url, proxy) = counted("gone").await;
    let asked: Vec<ItemId> = (0..10_000).map(ItemId).collect();
    let wanted = [item];
    let before = proxy.round_trips();
    let mut held = hold(&url).await;
    // Four calls fill a query.
    let gone: Vec<Call> = asked.chunks(250).map(|ids| ask(&archive, ids)).collect();
    let stays = ask(&archive, &wanted);
    drop(gone);
    held.execute("COMMIT").await.unwrap();
    assert_eq!(stays.await.unwrap()[0].as_ref().unwrap().id, item);
    let trips = proxy.round_trips() - before;
    assert!(trips <= ROUND_TRIPS, "{trips} round trips for one call that was waited for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_an_old_item_after_an_edit_through_another_node_was_answered() {
    let url = server().database("edited");
    let (node, other) = (Arc::new(open(&url).await), open(&url).await);
    let item = publish(&other, "1").await;
    let answered = Arc::new(AtomicU32::new(1));
    let edits = 40;
    let readers: Vec<_> = (0..32)
        .map(|_| {
            let (node, answered) = (node.clone(), answered.clone());
            tokio::spawn(async move {
                let mut least = 0;
                while least < edits {
                    least = answered.load(Ordering::SeqCst);
                    let found = node.items(&[item]).await.unwrap().remove(0).unwrap();
                    assert!(found.version >= least, "version {} after {least} was answered", found.version);
                    assert_eq!(found.body.get(), format!("{{\"text\":\"{}\"}}", found.version));
                }
            })
        })
        .collect();
    for version in 2..=edits {
        let body = Body::parse(format!("{{\"text\":\"{version}\"}}")).unwrap();
        let edit = Write::Edit { item, body: Some(body), rank: None, mentions: None, if_version: None };
        assert!(
            matches!(other.write(vec![edit], NOW).await.unwrap()[0], Ok(Written::Edited { version: v, .. }) if v == version)
        );
        answered.store(version, Ordering::SeqCst);
    }
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_item_fails_those_that_ask_for_it_and_no_other() {
    let url = server().database("damaged");
    let archive = open(&url).await;
    let (good, bad) = ([publish(&archive, "good").await], [publish(&archive, "bad").await]);
    assert_eq!(execute(&url, "UPDATE items SET body = 'no JSON' WHERE body LIKE '%bad%'").await, 1);
    let mut held = hold(&url).await;
    let calls: Vec<Call> = (0..64).map(|n| ask(&archive, if n % 8 == 5 { &bad } else { &good })).collect();
    held.execute("COMMIT").await.unwrap();
    for (n, answer) in join_all(calls).await.into_iter().enumerate() {
        match answer {
            Err(StoreError::Corrupt(why)) => assert!(n % 8 == 5 && why.contains(&bad[0].to_string()), "{n}: {why}"),
            answer => assert!(n % 8 != 5 && answer.unwrap()[0].as_ref().unwrap().id == good[0], "call {n}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backends_terminated_under_shared_reads_are_not_noticed() {
    let url = server().database("terminated");
    let archive = open(&url).await;
    let item = [publish(&archive, "hello").await];
    for _ in 0..5 {
        let _held = hold(&url).await;
        let calls: Vec<Call> = (0..100).map(|_| ask(&archive, &item)).collect();
        assert!(terminate(&url).await > 0);
        for answer in join_all(calls).await {
            assert_eq!(answer.unwrap()[0].as_ref().unwrap().id, item[0]);
        }
    }
}
