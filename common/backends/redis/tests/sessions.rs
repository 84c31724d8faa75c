//! The session pool in Redis against the promises of its trait, on one server and on a cluster.

mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::{Epoch, Sessions};
use feedgate_redis::{Epochs, Link, RedisSessions, Spans, Timeouts};
use redis::cmd;
use server::{Cluster, Server};
use tokio::sync::Mutex;

const BUCKETS: u16 = 16;

/// A counter that outlives every server, as the Archive's does.
#[derive(Default)]
struct Counter(AtomicU64);

#[async_trait]
impl Epochs for Counter {
    async fn next_epoch(&self) -> Result<Epoch> {
        Ok(Epoch(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

static EPOCHS: LazyLock<Arc<Counter>> = LazyLock::new(Arc::default);

async fn open(url: &str) -> Arc<dyn Sessions> {
    let link = Link::connect(url, Timeouts::default()).await.unwrap();
    Arc::new(RedisSessions::new(link, EPOCHS.clone(), BUCKETS, Spans::default()))
}

/// Opened under another name the pool is empty; under the same one again, its servers are killed and come back
/// with what they had.
async fn prepare(servers: &mut [Server], last: &mut String, name: &str) {
    let again = *last == name;
    for server in servers {
        if again {
            server.restart(true).await;
        } else {
            server.ask::<()>(&cmd("FLUSHALL")).await;
        }
    }
    *last = name.to_owned();
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_sessions_keep_the_promises_of_sessions() {
    let server = Mutex::new((Server::start(false).await, String::new()));
    feedgate_conformance::sessions::sessions(async |name| {
        let (server, last) = &mut *server.lock().await;
        prepare(std::slice::from_mut(server), last, name).await;
        open(&server.url()).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_cluster_sessions_keep_the_promises_of_sessions() {
    let cluster = Mutex::new((Cluster::start().await, String::new()));
    feedgate_conformance::sessions::sessions(async |name| {
        let (cluster, last) = &mut *cluster.lock().await;
        prepare(&mut cluster.0, last, name).await;
        cluster.whole().await;
        open(&cluster.url()).await
    })
    .await;
}
