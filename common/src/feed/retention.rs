//! How long inboxes are kept that nobody reads, and the clock of these feeds.
//!
//! Invariant: without a clock nothing is ever too old, neither an inbox nor an item.

use std::sync::Arc;
use std::time::Duration;

use crate::Millis;

type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// The time for which an unread inbox is kept, with the clock that measures it; none at first.
#[derive(Default)]
pub(super) struct Retention(Option<(Duration, Clock)>);

impl Retention {
    pub(super) fn new(unread: Duration, clock: Clock) -> Self {
        Self(Some((unread, clock)))
    }

    /// The time, in Unix ms; `None` without a clock.
    pub(super) fn now(&self) -> Option<Millis> {
        self.0.as_ref().map(|(_, clock)| clock())
    }

    /// Until when an inbox that is read now is kept; `None` means for ever.
    pub(super) fn kept_until(&self) -> Option<Millis> {
        let (unread, clock) = self.0.as_ref()?;
        Some(clock().saturating_add(Millis::try_from(unread.as_millis()).unwrap_or(Millis::MAX)))
    }
}
