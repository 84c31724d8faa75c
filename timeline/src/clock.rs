//! The time of day, in Unix ms, by which the Archive dates events and notices.

use std::time::{Duration, SystemTime};

use feedgate_common::Millis;

/// Reads the clock of the machine.
#[expect(clippy::disallowed_methods, reason = "the only clock of this crate")]
pub(crate) fn now() -> Millis {
    millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// The time `age` ago.
pub(crate) fn before(age: Duration) -> Millis {
    now().saturating_sub(millis(age))
}

/// The time `wait` after `now`.
pub(crate) fn after(now: Millis, wait: Duration) -> Millis {
    now.saturating_add(millis(wait))
}

/// A duration in ms; the greatest number for one that has more.
pub(crate) fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}
