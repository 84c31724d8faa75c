//! A Redis of a test's own, epochs beside it, and how tests wait.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::Epoch;
use feedgate_common::archive::Epochs;
use feedgate_common::error::Result;
use feedgate_engines::Redis;
use feedgate_redis::Timeouts;
use tokio::time::Instant;

/// What has not happened by then, on the slowest machine, does not happen.
const FOR_EVER: Duration = Duration::from_secs(300);

/// A counter that outlives every server, as the Archive's does.
#[derive(Debug, Default)]
pub(crate) struct Counter(pub(crate) AtomicU64);

#[async_trait]
impl Epochs for Counter {
    async fn next_epoch(&self) -> Result<Epoch> {
        Ok(Epoch(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

pub(crate) static EPOCHS: LazyLock<Arc<Counter>> = LazyLock::new(Arc::default);

/// Every write is in its file before it is answered.
pub(crate) fn server() -> Redis {
    Redis::start_with(&["--appendfsync", "always", "--repl-diskless-sync-delay", "0"])
}

/// Of a link whose calls do not fail because the machine is slow.
pub(crate) fn patient() -> Timeouts {
    Timeouts { connect: FOR_EVER, call: FOR_EVER }
}

/// Waits for a condition that is sure to come.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < FOR_EVER, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
