//! The times at which posts arrived, over several rounds.

use std::time::{Duration, Instant};

use super::{Arrivals, Report};

/// When the posts of several rounds arrived: the median round.
#[derive(Default)]
pub struct Times {
    p50: Vec<Duration>,
    p99: Vec<Duration>,
    last: Vec<Duration>,
}

impl Times {
    /// Adds one round, which began at `started`.
    pub fn add(&mut self, started: Instant, arrivals: &Arrivals) {
        for (list, share) in [(&mut self.p50, 0.5), (&mut self.p99, 0.99), (&mut self.last, 1.0)] {
            list.push(arrivals.quantile(share) - started);
        }
    }

    /// Reports all, and answers how long the last of `sessions` had to wait in the median round, in milliseconds.
    pub fn tell(self, name: &str, sessions: usize, report: &mut Report) -> f64 {
        let rounds = self.last.len() as f64;
        let seconds: f64 = self.last.iter().map(Duration::as_secs_f64).sum();
        let [p50, p99, last] = [self.p50, self.p99, self.last].map(|list| milliseconds(quantile(list, 0.5)));
        for (what, took) in [("p50", p50), ("p99", p99), ("last", last)] {
            report.figure(&format!("{name}: publish to device, {what}"), took, "ms");
        }
        report.figure(&format!("{name}: reached"), sessions as f64 * rounds / seconds, "sessions/s");
        last
    }
}

/// The least of `times`, of which there must be one, that this share of them does not exceed.
pub fn quantile(mut times: Vec<Duration>, share: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1]
}

/// A time in milliseconds, as reports show it.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
