//! How slowly a peer may receive what is written to it, after it has made the writer wait.
//!
//! A peer that receives only a byte from time to time would keep its answer in memory for ever. So a peer begins with
//! some time; every byte that the peer receives adds time at the least rate, but never to more time than it began with.

use std::time::Duration;

/// The bytes per second that a peer must receive at least: about what a phone has on a bad mobile network.
const LEAST_PER_SEC: u64 = 8 * 1024;

/// Until when one peer is waited for. Times are milliseconds of any one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    until: u64,
    timeout: u64,
}

impl Pace {
    /// Begins when the peer makes the writer wait for the first time. The peer may then receive nothing for as long as
    /// `timeout`.
    pub(crate) fn begin(now: u64, timeout: Duration) -> Self {
        let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Self { until: now.saturating_add(timeout), timeout }
    }

    /// Adds time for `bytes` bytes that the peer has received at `now`.
    pub(crate) fn took(&mut self, now: u64, bytes: usize) {
        let earned = bytes as u64 * 1000 / LEAST_PER_SEC;
        self.until = self.until.saturating_add(earned).min(now.saturating_add(self.timeout));
    }

    /// The time at which the peer is too slow, unless it receives something before.
    pub(crate) fn until(&self) -> u64 {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how long a peer that takes `bytes` every `every_ms` is waited for; at most an hour.
    fn waits(bytes: usize, every_ms: u64) -> u64 {
        let mut pace = Pace::begin(0, Duration::from_secs(10));
        let times = (1..).map(|n| n * every_ms).take_while(|now| *now <= 3_600_000);
        for now in times {
            if now >= pace.until() {
                return pace.until();
            }
            pace.took(now, bytes);
        }
        3_600_000
    }

    #[test]
    fn a_peer_that_takes_a_little_now_and_then_is_waited_for_no_longer_than_one_that_takes_nothing() {
        assert_eq!(waits(0, 1000), 10_000);
        assert_eq!(waits(1, 1000), 10_000);
        assert!(waits(1024, 1000) < 12_000);
        assert!(waits(4096, 1000) < 21_000);
    }

    #[test]
    fn a_peer_at_the_least_rate_is_waited_for_as_long_as_it_takes() {
        assert_eq!(waits(8192, 1000), 3_600_000);
        assert_eq!(waits(8192 * 9, 9000), 3_600_000);
        assert_eq!(waits(1_000_000, 11_000), 10_000, "nothing at all for so long is too long, whatever comes then");
    }
}
