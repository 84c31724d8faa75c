//! A store on a Redis of the test's own, and its readers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::{Epoch, Inboxes};
use feedgate_redis::{Epochs, Link, RedisInboxes, Timeouts};

pub(crate) const BUCKETS: u16 = 4;

/// A counter that outlives every server, as the Archive's does.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

#[async_trait]
impl Epochs for Counter {
    async fn next_epoch(&self) -> Result<Epoch> {
        Ok(Epoch(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

static EPOCHS: LazyLock<Arc<Counter>> = LazyLock::new(Arc::default);

pub(crate) async fn link(url: &str) -> Link {
    let timeouts = Timeouts { call: Duration::from_millis(500), ..Timeouts::default() };
    Link::connect(url, timeouts).await.unwrap()
}

pub(crate) async fn open(url: &str) -> Arc<dyn Inboxes> {
    Arc::new(RedisInboxes::open(link(url).await, EPOCHS.clone(), BUCKETS).await.unwrap())
}
