//! Limits how long a store call may take, so that a store that hangs cannot block its caller.

use std::future::Future;
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use feedgate_common::sessions::LEASE;
use tokio::time::timeout;

/// The most time that one call to the session pool may take. A lease has room for four such calls.
pub(crate) const CALL: Duration = LEASE.checked_div(4).expect("four is not zero");

/// Calls [`within`] with the time [`CALL`].
pub(crate) async fn bounded<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    within(CALL, call).await
}

/// Gives the call's answer, or [`StoreError::Unavailable`] when `time` has passed. The call is dropped then, and may or
/// may not have taken effect.
pub(crate) async fn within<T>(time: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout(time, call).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::unavailable(format_args!("no answer within {time:?}"))),
    }
}
