//! The inboxes in Redis against the promises of their trait, on one server and on a cluster.

mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::{Epoch, Inboxes};
use feedgate_redis::{Epochs, Link, RedisInboxes, Timeouts};
use redis::cmd;
use server::{Cluster, Server};

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

async fn open(url: &str) -> Arc<dyn Inboxes> {
    let link = Link::connect(url, Timeouts::default()).await.unwrap();
    Arc::new(RedisInboxes::open(link, EPOCHS.clone(), 4).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_inboxes_keep_the_promises_of_inboxes() {
    let server = Server::start(false).await;
    feedgate_conformance::inboxes::inboxes(async || {
        server.ask::<()>(&cmd("FLUSHALL")).await;
        open(&server.url()).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_cluster_inboxes_keep_the_promises_of_inboxes() {
    let cluster = Cluster::start().await;
    feedgate_conformance::inboxes::inboxes(async || {
        for node in &cluster.0 {
            node.ask::<()>(&cmd("FLUSHALL")).await;
        }
        open(&cluster.url()).await
    })
    .await;
}
