//! How long to leave something alone that has failed: twice as long each time, up to a limit.

use std::collections::HashMap;
use std::time::Duration;

use feedgate_common::jobs::Job;

/// Doubling waits between two bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    /// After the first failure.
    pub(crate) first: Duration,
    /// Never longer.
    pub(crate) max: Duration,
}

impl Backoff {
    /// The wait after `failures` in a row; none after none.
    pub(crate) fn after(self, failures: u32) -> Duration {
        match failures {
            0 => Duration::ZERO,
            n => self.first.saturating_mul(2u32.saturating_pow(n - 1)).min(self.max),
        }
    }
}

/// How often each job has failed in a row. Forgotten when the job succeeds.
#[derive(Debug, Default)]
pub(crate) struct Failures(HashMap<Job, u32>);

impl Failures {
    /// The most jobs remembered (I18): 24 bytes each. Beyond it all are forgotten, so that their next wait
    /// is short again; with this many failing it is the worker's own pause that counts.
    const JOBS_MAX: usize = 10_000;

    /// Counts one more failure of `job` and answers how many there are now.
    pub(crate) fn count(&mut self, job: Job) -> u32 {
        if self.0.len() >= Self::JOBS_MAX && !self.0.contains_key(&job) {
            self.0.clear();
        }
        let failures = self.0.entry(job).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// `job` has succeeded.
    pub(crate) fn forget(&mut self, job: Job) {
        self.0.remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;

    #[test]
    fn a_wait_doubles_up_to_its_limit_and_never_overflows() {
        let backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1) };
        let waits: Vec<u128> = [0, 1, 2, 3, 4, 5, 99, u32::MAX].map(|n| backoff.after(n).as_millis()).into();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1000, 1000, 1000]);
    }

    #[test]
    fn failures_are_counted_per_job_and_success_forgets_them() {
        let [a, b] = [1, 2].map(|n| Job::FanOut { author: UserNo(n) });
        let mut failures = Failures::default();
        assert_eq!([failures.count(a), failures.count(a), failures.count(b)], [1, 2, 1]);
        failures.forget(a);
        assert_eq!([failures.count(a), failures.count(b)], [1, 2]);
    }

    #[test]
    fn i18_the_memory_of_failures_is_bounded() {
        let mut failures = Failures::default();
        for n in 0..3 * Failures::JOBS_MAX as u32 {
            failures.count(Job::FanOut { author: UserNo(n) });
            assert!(failures.0.len() <= Failures::JOBS_MAX);
        }
    }
}
