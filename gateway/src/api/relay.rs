//! Tells the workers what accepted writes leave to do, until the queue has taken it.
//!
//! ```text
//!   accepted ─▶ put ─┬─ taken
//!                    └─ refused, or no answer ─▶ kept, merged ─▶ put again and again until the queue is back
//! ```
//!
//! Invariants: no write waits for a queue that is away, but for the first, for [`WITHIN`]; what is kept is bounded (I18);
//! what is not kept, or is lost with this process, is outstanding in the Archive, where the sweep of a worker finds it.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use feedgate_common::Jobs;
use feedgate_common::jobs::Job;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

/// How long the answer to an accepted write waits for its relay.
const WITHIN: Duration = Duration::from_secs(1);

/// Between two tries.
const AGAIN: Duration = Duration::from_millis(250);

/// Jobs put at a time.
const PAGE: usize = 1000;

/// Jobs kept: about 32 bytes each.
const KEPT_MAX: usize = 100_000;

/// See the module.
pub(crate) struct Relay {
    jobs: Arc<dyn Jobs>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    jobs: BTreeSet<Job>,
    /// A task puts them again.
    trying: bool,
}

impl Relay {
    pub(crate) fn new(jobs: Arc<dyn Jobs>) -> Arc<Self> {
        Arc::new(Self { jobs, kept: Mutex::default() })
    }

    /// Puts them, or keeps them to be put as soon as the queue takes them.
    pub(crate) async fn tell(self: &Arc<Self>, jobs: Vec<Job>) {
        if jobs.is_empty() || !self.kept.lock().trying && self.put(&jobs).await {
            return;
        }
        let mut kept = self.kept.lock();
        kept.keep(jobs);
        if !kept.trying {
            kept.trying = true;
            tracing::warn!(
                "accepted writes cannot be relayed to the workers; they are, as soon as the job queue is back"
            );
            tokio::spawn(catch_up(Arc::downgrade(self)));
        }
    }

    /// Whether the queue has taken them.
    async fn put(&self, jobs: &[Job]) -> bool {
        match timeout(WITHIN, self.jobs.put(jobs)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the job queue takes nothing");
                false
            }
            Err(_) => false,
        }
    }

    /// Puts a page of what is kept; whether the queue takes it. `None` if nothing was left.
    async fn put_kept(&self) -> Option<bool> {
        let page = self.kept.lock().page()?;
        let taken = self.put(&page).await;
        if !taken {
            self.kept.lock().keep(page);
        }
        Some(taken)
    }
}

impl Kept {
    fn keep(&mut self, jobs: Vec<Job>) {
        let room = KEPT_MAX.saturating_sub(self.jobs.len());
        self.jobs.extend(jobs.into_iter().take(room));
    }

    /// The next ones, no longer kept: what is put while they are under way is a job of its own. After the last, nobody
    /// tries any more.
    fn page(&mut self) -> Option<Vec<Job>> {
        let page: Vec<Job> = std::iter::from_fn(|| self.jobs.pop_first()).take(PAGE).collect();
        self.trying = !page.is_empty();
        self.trying.then_some(page)
    }
}

/// Until nothing is kept, or the gateway is gone.
async fn catch_up(relay: Weak<Relay>) {
    let mut taken = false;
    loop {
        if !taken {
            sleep(AGAIN).await;
        }
        let Some(relay) = relay.upgrade() else { return };
        match relay.put_kept().await {
            Some(now) => taken = now,
            None => return tracing::info!("what was accepted has been relayed to the workers"),
        }
    }
}
