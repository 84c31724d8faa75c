//! Decides whether a call to a server is tried. The code has no side effects; the caller passes the time as a value.
//!
//! ```text
//!            FAILURES in a row              pause over, the next call
//!   closed ────────────────────▶ open ────────────────────────────────▶ probing ─┐
//!     ▲                           ▲                                              │
//!     └── a call succeeded ───────┴── it failed, or was never heard of again ────┘
//! ```
//!
//! Invariants: while the breaker is open, no call is let through. While it is probing, one call is let through, and
//! another one only after the time of the first has passed. The pause doubles up to [`LONGEST`].

use std::time::Duration;

use tokio::time::Instant;

/// The number of failures in a row that opens the breaker.
const FAILURES: u32 = 3;
/// The pause after the breaker has opened for the first time.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause, after many failures.
pub(super) const LONGEST: Duration = Duration::from_millis(800);

/// Whether calls to a server are let through, refused, or tried one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaker {
    Closed { failures: u32 },
    Open { until: Instant, pause: Duration },
    Probing { until: Instant, pause: Duration },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Breaker {
    /// Whether a call that takes at most `patience` may be tried. If not, the error is for how long no call will be let
    /// through.
    pub(super) fn admit(&mut self, now: Instant, patience: Duration) -> Result<(), Duration> {
        match *self {
            Self::Closed { .. } => Ok(()),
            Self::Open { until, .. } | Self::Probing { until, .. } if now < until => Err(until - now),
            Self::Open { pause, .. } | Self::Probing { pause, .. } => {
                *self = Self::Probing { until: now + patience, pause };
                Ok(())
            }
        }
    }

    /// A call was given up before its result was known. If the breaker is probing, another call may probe from now on.
    pub(super) fn abandoned(&mut self, now: Instant) {
        if let Self::Probing { pause, .. } = *self {
            *self = Self::Open { until: now, pause };
        }
    }

    /// A call succeeded: the breaker closes.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Notes that a call failed, which may open the breaker.
    pub(super) fn failed(&mut self, now: Instant) {
        *self = match *self {
            Self::Closed { failures } if failures + 1 < FAILURES => Self::Closed { failures: failures + 1 },
            Self::Closed { .. } => Self::Open { until: now + SHORTEST, pause: SHORTEST },
            // The failed call began before the breaker opened, so it says nothing new.
            open @ Self::Open { .. } => open,
            Self::Probing { pause, .. } => {
                let pause = (2 * pause).min(LONGEST);
                Self::Open { until: now + pause, pause }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        (0..FAILURES).for_each(|_| breaker.failed(now));
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed(now);
            breaker.failed(now);
            breaker.succeeded();
        }
        assert_eq!(breaker.admit(now, PATIENCE), Ok(()));
        assert_eq!(opened(now).admit(now, PATIENCE), Err(SHORTEST));
    }

    #[test]
    fn after_the_pause_one_call_probes_and_the_others_wait_for_it() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let later = now + SHORTEST;
        assert_eq!(breaker.admit(later, PATIENCE), Ok(()));
        assert_eq!(breaker.admit(later, PATIENCE), Err(PATIENCE));
        breaker.succeeded();
        assert_eq!(breaker.admit(later, PATIENCE), Ok(()));
        assert_eq!(breaker.admit(later, PATIENCE), Ok(()));
    }

    #[test]
    fn a_probe_that_is_never_heard_of_again_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = opened(now);
        assert_eq!(breaker.admit(now + SHORTEST, PATIENCE), Ok(()));
        assert_eq!(breaker.admit(now + SHORTEST + PATIENCE, PATIENCE), Ok(()));
    }

    #[test]
    fn a_probe_that_was_given_up_early_makes_room_for_another_at_once() {
        let now = Instant::now();
        let mut breaker = opened(now);
        assert_eq!(breaker.admit(now + SHORTEST, PATIENCE), Ok(()));
        breaker.abandoned(now + SHORTEST);
        assert_eq!(breaker.admit(now + SHORTEST, PATIENCE), Ok(()));
        let mut closed = Breaker::default();
        closed.abandoned(now);
        assert_eq!(closed, Breaker::default());
    }

    #[test]
    fn the_pause_doubles_with_each_failed_probe_up_to_the_longest_and_calls_that_were_under_way_do_not_count() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        for pause in [50, 100, 200, 400, 800, 800].map(Duration::from_millis) {
            breaker.failed(now);
            assert_eq!(breaker.admit(now, PATIENCE), Err(pause));
            now += pause;
            assert_eq!(breaker.admit(now, PATIENCE), Ok(()));
            breaker.failed(now);
        }
    }
}
