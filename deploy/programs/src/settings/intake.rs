//! The settings of the intake: calls of backends that come over NATS.

use serde::{Deserialize, Serialize};

/// The most messages that a gateway may hold at a time: each may have a mebibyte.
const IN_FLIGHT_MAX: usize = 1024;

/// The most mebibytes that a stream may be given: a tebibyte.
const MB_MAX: u32 = 1 << 20;

/// The most days for which refused calls may be kept.
const DAYS_MAX: u32 = 365;

/// The settings of the intake, as in `feedgate_nats::IntakeSettings`, with the unit in each name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Intake {
    /// Whether gateways take calls of backends from NATS.
    pub(crate) open: bool,
    /// Messages that a gateway holds at a time.
    pub(crate) in_flight: usize,
    /// The most MiB of messages that wait.
    pub(crate) waiting_mb: u32,
    /// How many days refused calls are kept.
    pub(crate) refused_days: u32,
    /// The most MiB of refused calls.
    pub(crate) refused_mb: u32,
}

impl Default for Intake {
    fn default() -> Self {
        Self { open: false, in_flight: 64, waiting_mb: 1024, refused_days: 7, refused_mb: 256 }
    }
}

impl Intake {
    /// What is wrong with each value, with what would be right.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        let bounds = [
            ("in_flight", self.in_flight as u64, IN_FLIGHT_MAX as u64),
            ("waiting_mb", self.waiting_mb.into(), MB_MAX.into()),
            ("refused_days", self.refused_days.into(), DAYS_MAX.into()),
            ("refused_mb", self.refused_mb.into(), MB_MAX.into()),
        ];
        let wrong = bounds.into_iter().filter(|(_, value, max)| !(1..=*max).contains(value));
        wrong.map(|(name, value, max)| format!("intake.{name} must be 1 to {max}, it is {value}"))
    }

    /// The settings in the form in which the intake takes them.
    #[cfg(feature = "cluster")]
    pub(crate) fn settings(&self) -> feedgate_nats::IntakeSettings {
        feedgate_nats::IntakeSettings {
            in_flight: self.in_flight,
            waiting_bytes: i64::from(self.waiting_mb) << 20,
            refused_age: std::time::Duration::from_secs(24 * 3600) * self.refused_days,
            refused_bytes: i64::from(self.refused_mb) << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_beyond_its_bound_is_named() {
        let wrong = Intake { open: true, in_flight: 1025, waiting_mb: 0, refused_days: 366, refused_mb: u32::MAX };
        let problems: Vec<String> = wrong.problems().collect();
        for (at, right) in
            ["in_flight must be 1 to 1024", "waiting_mb must be 1 to", "refused_days", "refused_mb"].iter().enumerate()
        {
            assert!(problems[at].starts_with(&format!("intake.{right}")), "{problems:?}");
        }
        assert_eq!(Intake::default().problems().count(), 0);
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn the_defaults_are_those_of_the_intake() {
        assert_eq!(Intake::default().settings(), feedgate_nats::IntakeSettings::default());
    }
}
