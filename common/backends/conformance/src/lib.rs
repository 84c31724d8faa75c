//! The tests that every implementation ("home") of a trait of `feedgate-common` must pass: a function for each trait
//! that takes `open`. Of [`archive`] each group of tests has a function, and [`archive_tests!`] makes a test of each.
//!
//! The tour of all crates is in [`feedgate_common`]. The programs that put the crates together are in
//! [`feedgate`](../feedgate/index.html), the last crate of the tour.
//!
//! Each function panics with a sentence at the first broken promise. A store in memory must pass all tests too.

pub mod archive;
pub mod doorbell;
pub mod inboxes;
pub mod jobs;
pub mod sessions;

use std::time::Duration;

/// Waits for `work`, at most for a time after which nothing more happens even on the slowest machine.
async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout(Duration::from_secs(300), work).await
}
