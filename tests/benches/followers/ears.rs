//! Counts what the doorbell tells, to know the moment at which a post has reached all inboxes or nodes.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use feedgate_common::doorbell::{Heard, Listening};
use feedgate_common::{Doorbell, PullSeq};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Nothing takes this long unless something is lost.
const PATIENCE: Duration = Duration::from_secs(300);

/// A listener at the doorbell that counts what it hears, and waits for a count to be reached.
pub(crate) struct Ears {
    counts: Arc<Counts>,
    _listening: Listening,
}

#[derive(Default)]
struct Counts {
    grown: AtomicU64,
    hot: AtomicU64,
    told: Notify,
}

impl Ears {
    pub(crate) fn at(doorbell: &dyn Doorbell) -> Self {
        let counts = Arc::new(Counts::default());
        let count = counts.clone();
        let listening = doorbell.listen(Arc::new(move |heard| {
            match heard {
                Heard::Growth(growth) => count.grown.fetch_add(growth.inboxes.len() as u64, Ordering::Relaxed),
                Heard::Hot(head) => count.hot.fetch_max(head.pull_seq, Ordering::Relaxed),
                Heard::Missed
                | Heard::Close { .. }
                | Heard::Confirm(_)
                | Heard::Message { .. }
                | Heard::Seen(_)
                | Heard::Stirred(_) => {
                    return;
                }
            };
            count.told.notify_waiters();
        }));
        Self { counts, _listening: listening }
    }

    /// How often inboxes have grown so far.
    pub(crate) fn grown(&self) -> u64 {
        self.counts.grown.load(Ordering::Relaxed)
    }

    /// The newest number that was told of what is pulled.
    pub(crate) fn hot(&self) -> PullSeq {
        self.counts.hot.load(Ordering::Relaxed)
    }

    /// Waits until inboxes have grown `times` times.
    pub(crate) async fn until_grown(&self, times: u64) -> anyhow::Result<()> {
        self.until("the last inbox to grow", || self.grown() >= times).await
    }

    /// Waits until the doorbell has told of this pull number.
    pub(crate) async fn until_hot(&self, number: PullSeq) -> anyhow::Result<()> {
        self.until("the news of a post that is pulled", || self.hot() >= number).await
    }

    async fn until(&self, what: &str, done: impl Fn() -> bool) -> anyhow::Result<()> {
        let waiting = async {
            loop {
                let mut told = pin!(self.counts.told.notified());
                told.as_mut().enable();
                if done() {
                    return;
                }
                told.await;
            }
        };
        timeout(PATIENCE, waiting).await.with_context(|| format!("{what} is not there after {PATIENCE:?}"))
    }
}
