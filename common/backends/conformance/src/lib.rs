//! What every home of a trait of `feedgate-common` must pass: a function per trait that takes `open`.
//!
//! Each panics with a sentence at the first promise that is broken. Memory is not excused.

pub mod archive;
pub mod doorbell;
pub mod inboxes;
pub mod jobs;
pub mod sessions;

use std::time::Duration;

/// What has not happened by the end of this, on the slowest machine, does not happen.
async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout(Duration::from_secs(300), work).await
}
