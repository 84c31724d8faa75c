//! Tells the workers about the jobs that accepted writes have made, until the queue has taken these jobs.
//!
//! ```text
//!   accepted ─▶ put ─┬─ taken, or the queue is full: a worker's sweep brings it when there is room
//!                    └─ refused, or no answer ─▶ kept, merged ─▶ put again and again until the queue is back
//! ```
//!
//! Invariants: while the queue is away only the first write waits for it, for [`TIMEOUT`]. The kept jobs are bounded
//! (I18). Jobs that are not kept, or are lost with this process, are outstanding in the Archive, where a worker's sweep
//! finds them.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use feedgate_common::jobs::Job;
use feedgate_common::{Jobs, StoreError};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

/// The most time that the answer to an accepted write waits for the queue.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait between two tries.
const AGAIN: Duration = Duration::from_millis(250);

/// How many kept jobs are put in one call.
const PAGE: usize = 1000;

/// The most jobs that are kept, at about 32 bytes each.
const KEPT_MAX: usize = 100_000;

/// Puts jobs into the workers' queue, and keeps them while the queue is away.
pub(crate) struct Relay {
    jobs: Arc<dyn Jobs>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    jobs: BTreeSet<Job>,
    /// Whether a task is putting the kept jobs.
    trying: bool,
}

impl Relay {
    pub(crate) fn new(jobs: Arc<dyn Jobs>) -> Arc<Self> {
        Arc::new(Self { jobs, kept: Mutex::default() })
    }

    /// Puts the jobs; if the queue does not take them, keeps them and lets a task put them later. If the future is
    /// dropped, the jobs may be neither put nor kept.
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

    /// Puts the jobs; false if the queue is away. Jobs that a full queue does not take are left to a worker's sweep.
    async fn put(&self, jobs: &[Job]) -> bool {
        match timeout(TIMEOUT, self.jobs.put(jobs)).await {
            Ok(Ok(()) | Err(StoreError::Overloaded { .. })) => true,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the job queue takes nothing");
                false
            }
            Err(_) => false,
        }
    }

    /// Puts a page of the kept jobs, and gives whether the queue has taken it; `None` if no jobs were left. If the
    /// future is dropped, the page may be lost.
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

    /// Takes out the next kept jobs: a job that is kept again while its page is being put is put again. If no jobs are
    /// left, notes that no task is trying.
    fn page(&mut self) -> Option<Vec<Job>> {
        let page: Vec<Job> = std::iter::from_fn(|| self.jobs.pop_first()).take(PAGE).collect();
        self.trying = !page.is_empty();
        self.trying.then_some(page)
    }
}

/// Puts kept jobs until none is left, or the gateway is gone.
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

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;
    use feedgate_embedded::EmbeddedJobs;

    use super::*;

    #[tokio::test]
    async fn what_a_full_queue_does_not_take_is_not_kept_here() {
        let relay = Relay::new(Arc::new(EmbeddedJobs::with_room(1)));
        relay.tell([1, 2].map(|n| Job::FanOut { author: UserNo(n) }).into()).await;
        assert_eq!(relay.jobs.pending().await.unwrap(), 1);
        let kept = relay.kept.lock();
        assert!(kept.jobs.is_empty() && !kept.trying);
    }
}
