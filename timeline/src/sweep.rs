//! Relays events that nobody has finished: what a crash left between commit and relay, what a job queue
//! has lost, what a rolled back store has reopened.
//!
//! Everything outstanding at the start, so that a restart resumes at once, and whenever the job queue comes back, for what
//! was accepted while it was away was not put, and it may have lost what was. Else, a page each time, what is overdue, round
//! and round: events that fail every time do not hide the younger ones behind them. Relaying too often is harmless, for
//! equal jobs merge and finished work finds nothing to do.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use feedgate_common::archive::{Events, Outstanding};
use feedgate_common::error::Result;
use feedgate_common::jobs::Job;
use feedgate_common::{Jobs, Millis};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::Pulse;
use crate::rounds::Rounds;

/// Events relayed at a time.
const PAGE: usize = 1000;

/// Between two tries to relay everything.
const AGAIN: Duration = Duration::from_millis(250);

/// Looks after the events of one Archive.
pub(crate) struct Sweep {
    pub(crate) events: Arc<dyn Events>,
    pub(crate) jobs: Arc<dyn Jobs>,
    pub(crate) every: Duration,
    pub(crate) overdue: Duration,
    pub(crate) pulse: Arc<Pulse>,
}

impl Sweep {
    /// Sweeps until the shutdown. A failed sweep is a warning; the next one finds the same events.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let mut rounds = Rounds::of("a sweep", self.every, shutdown);
        let mut returns = self.jobs.returns();
        let (mut all, mut behind, mut go_on) = (true, None, true);
        while go_on {
            let sweep = async {
                let end = if all { self.relay_all().await } else { self.relay(behind, before(self.overdue)).await };
                (behind, all) = (end?, false);
                Ok(())
            };
            go_on = tokio::select! {
                biased;
                Some(()) = returns.next() => {
                    all = true;
                    true
                }
                go_on = rounds.next(sweep) => go_on,
            };
            if all {
                rounds.next_after(AGAIN);
            }
        }
    }

    async fn relay_all(&self) -> Result<Option<Outstanding>> {
        let mut behind = None;
        loop {
            behind = self.relay(behind, Millis::MAX).await?;
            if behind.is_none() {
                return Ok(None);
            }
        }
    }

    /// Relays the next page behind `behind`, and answers where the one after it begins; `None` at the end.
    async fn relay(&self, behind: Option<Outstanding>, not_after: Millis) -> Result<Option<Outstanding>> {
        self.pulse.swept();
        let page = self.events.outstanding(behind, not_after, PAGE).await?;
        let mut jobs: Vec<Job> = page.iter().map(|line| Job::from(line.event)).collect();
        jobs.sort_unstable();
        jobs.dedup();
        if !jobs.is_empty() {
            self.jobs.put(&jobs).await?;
            tracing::info!(events = page.len(), "relayed what was outstanding");
        }
        Ok(page.last().copied().filter(|_| page.len() == PAGE))
    }
}

/// The time `age` ago, in Unix ms.
#[expect(clippy::disallowed_methods, reason = "the only clock of this crate: the Archive dates its events by it")]
pub(crate) fn before(age: Duration) -> Millis {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(now.saturating_sub(age).as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;
    use feedgate_common::archive::{Publish, Write, Writes};
    use feedgate_embedded::Embedded;

    use super::*;

    /// Posts of as many authors, accepted and never relayed.
    async fn accept(archive: &dyn Writes, authors: usize) {
        let post =
            |n| Write::Publish(Publish::new(format!("a{n}").parse().unwrap(), Body::parse("1".to_owned()).unwrap()));
        archive.write((0..authors).map(post).collect(), 1).await.unwrap();
    }

    #[tokio::test]
    async fn events_that_nobody_can_finish_do_not_hide_the_younger_ones() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        accept(&*stores.archive, PAGE + 1).await;
        let (events, jobs) = (stores.archive.clone(), stores.jobs.clone());
        let sweep = Sweep { events, jobs, every: Duration::ZERO, overdue: Duration::ZERO, pulse: Arc::default() };
        let full = sweep.relay(None, 1).await.unwrap();
        assert_eq!(stores.jobs.pending().await.unwrap(), PAGE as u64);
        let end = sweep.relay(full, 1).await.unwrap();
        assert_eq!((end, stores.jobs.pending().await.unwrap()), (None, PAGE as u64 + 1));
    }

    #[tokio::test]
    async fn a_start_relays_everything_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        accept(&*stores.archive, 2 * PAGE + 1).await;
        let (events, jobs) = (stores.archive.clone(), stores.jobs.clone());
        let sweep = Sweep { events, jobs, every: Duration::ZERO, overdue: Duration::ZERO, pulse: Arc::default() };
        sweep.relay_all().await.unwrap();
        assert_eq!(stores.jobs.pending().await.unwrap(), 2 * PAGE as u64 + 1);
    }
}
