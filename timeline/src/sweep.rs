//! Relays events that nobody has finished: what a crash left between commit and relay, what a job queue
//! has lost, what a rolled back store has reopened.
//!
//! Once at start everything outstanding, so that a restart resumes at once; then regularly what is
//! overdue. Relaying too often is harmless, for equal jobs merge and finished work finds nothing to do.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use feedgate_common::error::Result;
use feedgate_common::jobs::Job;
use feedgate_common::{Archive, Jobs, Millis};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Events relayed at a time.
const PAGE: usize = 1000;

/// Looks after one Archive.
pub(crate) struct Sweep {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) jobs: Arc<dyn Jobs>,
    pub(crate) every: Duration,
    pub(crate) overdue: Duration,
}

impl Sweep {
    /// Sweeps until the shutdown. A failed sweep is a warning; the next one finds the same events.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut all = true;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                swept = async {
                    ticks.tick().await;
                    self.relay(if all { Millis::MAX } else { before(self.overdue) }).await
                } => match swept {
                    Ok(events) => {
                        if events > 0 {
                            tracing::info!(events, "relayed what was outstanding");
                        }
                        all = events == PAGE && all;
                    }
                    Err(error) => tracing::warn!(%error, "a sweep failed; the next one tries again"),
                },
            }
        }
    }

    async fn relay(&self, not_after: Millis) -> Result<usize> {
        let events = self.archive.outstanding(not_after, PAGE).await?;
        let mut jobs: Vec<Job> = events.iter().map(|event| Job::from(*event)).collect();
        jobs.sort_unstable();
        jobs.dedup();
        if !jobs.is_empty() {
            self.jobs.put(&jobs).await?;
        }
        Ok(events.len())
    }
}

/// The time `age` ago, in Unix ms.
fn before(age: Duration) -> Millis {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(now.saturating_sub(age).as_millis()).unwrap_or(Millis::MAX)
}
