//! What an operator or a test may set.

use std::time::Duration;

/// Of one worker. [`Settings::default`] is what `feedgate serve` runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Posts worked off at a time, at least 1. Edges that have changed have half as many hands of their own, and so has
    /// what is tried again after a failure.
    pub in_flight: usize,
    /// Buckets of one job that advance at a time, at least 1.
    pub buckets_at_once: usize,
    /// How often the sweep looks for events that nobody has finished.
    pub sweep_every: Duration,
    /// How old an outstanding event is before the sweep relays it again.
    pub overdue: Duration,
    /// How often inboxes are dropped that are not kept any more.
    pub clean_every: Duration,
    /// The wait after a first failure; it doubles with each further one.
    pub retry_first: Duration,
    /// The longest wait after a failure.
    pub retry_max: Duration,
    /// How long a shutdown waits for jobs in flight before it gives them back.
    pub drain: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            in_flight: 8,
            buckets_at_once: 16,
            sweep_every: Duration::from_secs(5),
            overdue: Duration::from_secs(30),
            clean_every: Duration::from_secs(60),
            retry_first: Duration::from_millis(100),
            retry_max: Duration::from_secs(2),
            drain: Duration::from_secs(3),
        }
    }
}
