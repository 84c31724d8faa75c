//! Brings edits and deletes of items to the rankings that hold them, a step at a time.
//!
//! The Archive stores which rankings are still to be changed, and what a step addresses to readers. So a worker that
//! dies loses nothing, and several workers may do this at once.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::error::Result;
use feedgate_common::jobs::Job;
use feedgate_common::{Archive, Jobs};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::rounds::Rounds;

/// How often the worker looks for edits and deletes. A device with a ranking hears of an edit about this much later.
const EVERY: Duration = Duration::from_millis(250);

/// How many rankings one step changes.
const STEP: usize = 500;

/// Renews the rankings of one Archive.
pub(crate) struct Renewing {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) jobs: Arc<dyn Jobs>,
}

impl Renewing {
    /// Renews until the shutdown. A failed round is a warning; the next one goes on where this one stopped.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let mut rounds = Rounds::of("the renewal of rankings", EVERY, shutdown);
        while rounds.next(self.round()).await {}
    }

    /// Takes steps until nothing is outstanding. Jobs that the queue does not take are left to the sweep.
    async fn round(&self) -> Result<()> {
        loop {
            let renewed = self.archive.renew_rankings(clock::now(), STEP).await?;
            let jobs: Vec<Job> = renewed.readers.into_iter().map(|reader| Job::Direct { reader }).collect();
            if !jobs.is_empty() {
                self.jobs.put(&jobs).await?;
            }
            if !renewed.more {
                return Ok(());
            }
        }
    }
}
