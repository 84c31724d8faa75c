//! The settings of the events for other programs: how long they are kept, in the data directory or on stream `FEED`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The most hours for which events may be kept: a year.
const HOURS_MAX: u32 = 24 * 366;

/// The most mebibytes of events that may be kept: a tebibyte.
const MB_MAX: u32 = 1 << 20;

/// How many events in the data directory count as a mebibyte: an event counts as 256 bytes, with all that the store
/// needs.
const A_MEBIBYTE: u64 = 4096;

/// How long events are kept, with the unit in each name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Kept {
    /// For how many hours an event is kept.
    pub(crate) kept_hours: u32,
    /// The most MiB of events that are kept.
    pub(crate) kept_mb: u32,
}

impl Default for Kept {
    fn default() -> Self {
        Self { kept_hours: 24, kept_mb: 256 }
    }
}

impl Kept {
    /// What is wrong with each value, with what would be right.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        let bounds = [("kept_hours", self.kept_hours, HOURS_MAX), ("kept_mb", self.kept_mb, MB_MAX)];
        let wrong = bounds.into_iter().filter(|(_, value, max)| !(1..=*max).contains(value));
        wrong.map(|(name, value, max)| format!("events.{name} must be 1 to {max}, it is {value}"))
    }

    /// For how long an event is kept.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_secs(3600) * self.kept_hours
    }

    /// The settings in the form in which the embedded Archive takes them.
    pub(crate) fn embedded(&self) -> feedgate_embedded::Kept {
        feedgate_embedded::Kept { age: self.age(), most: u64::from(self.kept_mb) * A_MEBIBYTE }
    }

    /// The settings in the form in which the streams take them.
    #[cfg(feature = "cluster")]
    pub(crate) fn streams(&self) -> feedgate_nats::Settings {
        let events_bytes = i64::from(self.kept_mb) << 20;
        feedgate_nats::Settings { events_age: self.age(), events_bytes, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_stores() {
        assert_eq!(Kept::default().embedded(), feedgate_embedded::Kept::default());
        assert_eq!(Kept::default().problems().count(), 0);
        #[cfg(feature = "cluster")]
        assert_eq!(Kept::default().streams(), feedgate_nats::Settings::default());
    }

    #[test]
    fn a_value_out_of_bounds_is_named() {
        let problems: Vec<_> = Kept { kept_hours: 0, kept_mb: MB_MAX + 1 }.problems().collect();
        assert!(problems.len() == 2 && problems[1].starts_with("events.kept_mb must be 1 to 1048576"), "{problems:?}");
    }
}
