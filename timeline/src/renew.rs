//! Brings edits and deletes of items to the rankings that hold them, a step at a time.
//!
//! The Archive stores which rankings are still to be changed, and what a step addresses to readers. So a worker that
//! dies loses nothing, and several workers may do this at once.

use std::time::Duration;

use feedgate_common::jobs::Job;
use feedgate_common::{Archive, Jobs};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::rounds::again;

/// How often the worker looks for edits and deletes. A device with a ranking hears of an edit about this much later.
const EVERY: Duration = Duration::from_millis(250);

/// How many rankings one step changes.
const STEP: usize = 500;

/// Renews until the shutdown. A failed step is a warning; the next one goes on where this one stopped. Jobs that the
/// queue does not take are left to the sweep.
pub(crate) async fn run(archive: &dyn Archive, queue: &dyn Jobs, shutdown: &CancellationToken) {
    let step = || async {
        let renewed = archive.renew_rankings(clock::now(), STEP).await?;
        let jobs: Vec<Job> = renewed.readers.into_iter().map(|reader| Job::Direct { reader }).collect();
        if !jobs.is_empty() {
            queue.put(&jobs).await?;
        }
        Ok(renewed.more)
    };
    again("the renewal of rankings", EVERY, shutdown, step).await;
}
