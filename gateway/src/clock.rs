//! Reads the clocks of the machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use feedgate_common::Millis;
use rustix::time::{ClockId, clock_gettime};

/// The time now, in Unix milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How long this machine has been suspended since it started, in milliseconds. During a suspension, the clock of timers
/// and of [`Instant`](std::time::Instant) stands still.
pub(crate) fn suspended_ms() -> u64 {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    // The clocks are read in this order, so that the time between the two reads never makes the difference smaller.
    let awake = read(ClockId::Monotonic);
    let all = read(ClockId::Boottime);
    u64::try_from(all.saturating_sub(awake).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since the machine started, including suspended time, from another source of the kernel.
    fn uptime() -> f64 {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn what_the_machine_was_awake_and_suspended_is_what_it_is_up() {
        let before = uptime();
        let suspended = suspended_ms() as f64 / 1000.0;
        let awake = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap().as_secs_f64();
        let (sum, after) = (awake + suspended, uptime());
        assert!(before - 0.1 <= sum && sum <= after + 0.1, "{before} {sum} {after}");
    }
}
