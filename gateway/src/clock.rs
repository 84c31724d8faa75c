//! The edge where time enters.

use std::time::{SystemTime, UNIX_EPOCH};

use feedgate_common::Millis;

/// Now, in Unix milliseconds.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
