//! Tries a commit of an import again while a store is away.

use std::time::Duration;

use feedgate_common::{StoreError, error};
use tokio::time::sleep;

/// How often a group is tried while a store is away or busy.
const TRIES: u32 = 5;

/// The first pause between two tries; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// Makes one commit, and tries it again while a store is away: an import takes long, and writing a line twice is
/// harmless.
pub(super) async fn patiently<T, F: Future<Output = error::Result<T>>>(commit: impl Fn() -> F) -> error::Result<T> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match commit().await {
            Err(StoreError::Overloaded { retry_after_ms }) => {
                sleep(Duration::from_millis(retry_after_ms.into()).max(pause)).await;
            }
            Err(StoreError::Unavailable(_) | StoreError::Misconfigured(_) | StoreError::Down(_)) => sleep(pause).await,
            answer => return answer,
        }
        pause *= 2;
    }
    commit().await
}
