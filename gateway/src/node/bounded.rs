//! A store call answers in time, or counts as failed: an outage delays, it never blocks.

use std::future::Future;
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use feedgate_common::sessions::LEASE;
use tokio::time::timeout;

/// What one call to the session pool may take. A lease has room for four.
pub(crate) const CALL: Duration = LEASE.checked_div(4).expect("four is not zero");

/// [`within`] [`CALL`].
pub(crate) async fn bounded<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    within(CALL, call).await
}

/// The call's answer, or [`StoreError::Unavailable`] when `time` has passed; the call is dropped then, and may
/// or may not have done what it was to do.
pub(crate) async fn within<T>(time: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout(time, call).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::unavailable(format_args!("no answer within {time:?}"))),
    }
}
