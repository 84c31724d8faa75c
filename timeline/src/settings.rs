//! The settings of a worker that an operator or a test may change.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of one worker. [`Settings::default`] is what `feedgate serve` runs with. In a file each time is a whole
/// number of milliseconds, under a name that ends with `_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Posts worked off at a time, at least 1. Besides these, half as many changed edges are worked off at a time, and
    /// half as many jobs that are tried again after a failure.
    pub in_flight: usize,
    /// Buckets of one job that advance at a time, at least 1.
    pub buckets_at_once: usize,
    /// How often the sweep looks for events that nobody has finished.
    #[serde(rename = "sweep_every_ms", with = "millis")]
    pub sweep_every: Duration,
    /// How old an outstanding event is before the sweep relays it again.
    #[serde(rename = "overdue_ms", with = "millis")]
    pub overdue: Duration,
    /// How often inboxes are dropped that are not kept any more.
    #[serde(rename = "clean_every_ms", with = "millis")]
    pub clean_every: Duration,
    /// The wait after a first failure; the wait doubles with each further failure.
    #[serde(rename = "retry_first_ms", with = "millis")]
    pub retry_first: Duration,
    /// The longest wait after a failure.
    #[serde(rename = "retry_max_ms", with = "millis")]
    pub retry_max: Duration,
    /// How long a shutdown waits for jobs in flight before it gives them back.
    #[serde(rename = "drain_ms", with = "millis")]
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

impl Settings {
    /// What is wrong with each setting, under its name in a file, with what would be right.
    pub fn problems(&self) -> Vec<String> {
        let at_least_one = [
            ("in_flight", self.in_flight == 0),
            ("buckets_at_once", self.buckets_at_once == 0),
            ("sweep_every_ms", self.sweep_every.is_zero()),
            ("clean_every_ms", self.clean_every.is_zero()),
            ("retry_first_ms", self.retry_first.is_zero()),
            ("retry_max_ms", self.retry_max.is_zero()),
        ];
        let zero = at_least_one.into_iter().filter(|(_, is_zero)| *is_zero);
        zero.map(|(name, _)| format!("{name} must be at least 1, it is 0")).collect()
    }
}

/// A time in a file: whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
