//! The clock of deadlines: how long the node has been up.

use std::time::Duration;

use tokio::time::Instant;

/// When the node was made. Every copy tells the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uptime(Instant);

impl Uptime {
    /// Of a node that is made now.
    pub(super) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the node was made.
    pub(crate) fn elapsed_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The instant at which [`Uptime::elapsed_ms`] will be `ms`.
    pub(crate) fn at(self, ms: u64) -> Instant {
        self.0 + Duration::from_millis(ms)
    }
}
