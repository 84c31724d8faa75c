//! Jobs that have failed are held here and tried again: later each time, but at once as soon as another retry has
//! succeeded.
//!
//! ```text
//!   fails ─▶ held, not in the queue ── due, or the retry before it succeeded ─▶ tried again ─┬─ succeeds: forgotten
//!      ▲                                                                                     │
//!      └─────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Invariants: pure, no clock; bounded in memory (I18). A failed job that is not held has an outstanding event in the
//! Archive, where the sweep finds it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use feedgate_common::jobs::Job;
use tokio::time::Instant;

/// Doubling waits between two bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    /// The wait after the first failure.
    pub(crate) first: Duration,
    /// No wait is longer than this.
    pub(crate) max: Duration,
}

impl Backoff {
    /// The wait after `failures` failures in a row; zero if there was none.
    pub(crate) fn after(self, failures: u32) -> Duration {
        match failures {
            0 => Duration::ZERO,
            n => self.first.saturating_mul(2u32.saturating_pow(n - 1)).min(self.max),
        }
    }
}

/// How long no retry begins after one that failed, so that thousands that fail take little from the others.
const PACE: Duration = Duration::from_millis(20);

/// Where the cause of a failure is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A store or this process is in trouble: the job could be done.
    #[default]
    Around,
    /// The data of the job are damaged, or its step panicked: neither time nor another process helps.
    Own,
}

/// The jobs that have failed, each with the time at which it is tried again.
#[derive(Debug)]
pub(crate) struct Retries {
    backoff: Backoff,
    failed: HashMap<Job, Failed>,
    /// How many of them have last failed by a [`Cause::Around`] them.
    held_up: usize,
    due: BTreeSet<(Instant, Job)>,
    /// Whether a retry has succeeded, so that the other jobs need not wait until they are due.
    eager: bool,
    paused_until: Option<Instant>,
}

#[derive(Debug, Default)]
struct Failed {
    times: u32,
    cause: Cause,
    /// When the job is tried again; `None` while a retry is under way.
    due: Option<Instant>,
}

impl Retries {
    /// The most jobs held: about 100 bytes each.
    const JOBS_MAX: usize = 10_000;

    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { backoff, failed: HashMap::new(), held_up: 0, due: BTreeSet::new(), eager: false, paused_until: None }
    }

    /// Keeps a job that has failed, for `at_least` or longer. If [`Self::JOBS_MAX`] jobs are kept already, it is
    /// dropped, and a sweep finds its event.
    pub(crate) fn failed(&mut self, job: Job, now: Instant, at_least: Duration, cause: Cause) {
        if self.failed.len() >= Self::JOBS_MAX && !self.failed.contains_key(&job) {
            return;
        }
        let failed = self.failed.entry(job).or_default();
        self.held_up -= usize::from(failed.times > 0 && failed.cause == Cause::Around);
        self.held_up += usize::from(cause == Cause::Around);
        failed.cause = cause;
        if failed.times > 0 && failed.due.is_none() {
            (self.eager, self.paused_until) = (false, Some(now + PACE));
        }
        failed.times = failed.times.saturating_add(1);
        let due = now + self.backoff.after(failed.times).max(at_least);
        if let Some(before) = failed.due.replace(due) {
            self.due.remove(&(before, job));
        }
        self.due.insert((due, job));
    }

    /// Forgets the failures of `job`, which has succeeded.
    pub(crate) fn succeeded(&mut self, job: Job) {
        if let Some(failed) = self.failed.remove(&job) {
            self.held_up -= usize::from(failed.cause == Cause::Around);
            failed.due.map(|due| self.due.remove(&(due, job)));
            (self.eager, self.paused_until) = (!self.due.is_empty(), None);
        }
    }

    /// Whether a job is held that could be done, and was not because something around it is in trouble.
    pub(crate) fn are_held_up(&self) -> bool {
        self.held_up > 0
    }

    /// When the next job may be tried again, seen from `now`; `None` if no job waits.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let (due, _) = self.due.first()?;
        Some(if self.eager { now } else { self.paused_until.map_or(*due, |paused| paused.max(*due)) })
    }

    /// The job that is due first, which is tried again now.
    pub(crate) fn next(&mut self) -> Option<Job> {
        let (_, job) = self.due.pop_first()?;
        self.eager &= !self.due.is_empty();
        if let Some(failed) = self.failed.get_mut(&job) {
            failed.due = None;
        }
        Some(job)
    }

    /// Gives all held jobs, and holds none of them any longer.
    pub(crate) fn let_go(&mut self) -> Vec<Job> {
        self.due.clear();
        self.held_up = 0;
        self.failed.drain().map(|(job, _)| job).collect()
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;

    const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1) };

    fn job(n: u32) -> Job {
        Job::FanOut { author: UserNo(n) }
    }

    /// How long from `now` until something is tried again.
    fn wait(retries: &Retries, now: Instant) -> Duration {
        retries.next_due(now).expect("something is held") - now
    }

    #[test]
    fn a_wait_doubles_up_to_its_limit_and_never_overflows() {
        let waits: Vec<u128> = [0, 1, 2, 3, 4, 5, 99, u32::MAX].map(|n| BACKOFF.after(n).as_millis()).into();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1000, 1000, 1000]);
    }

    #[test]
    fn a_job_waits_longer_with_each_failure_and_success_forgets_it() {
        let (mut retries, now) = (Retries::new(BACKOFF), Instant::now());
        retries.failed(job(1), now, Duration::ZERO, Cause::Around);
        assert_eq!(wait(&retries, now), Duration::from_millis(100));
        assert_eq!((retries.next(), retries.next()), (Some(job(1)), None), "it is tried once at a time");
        retries.failed(job(1), now, Duration::ZERO, Cause::Around);
        assert_eq!(wait(&retries, now), Duration::from_millis(200));
        retries.failed(job(1), now, Duration::from_secs(9), Cause::Around);
        assert_eq!(wait(&retries, now), Duration::from_secs(9), "the store asked for it");
        retries.succeeded(job(1));
        assert_eq!(retries.next_due(now), None);
        retries.failed(job(1), now, Duration::ZERO, Cause::Around);
        assert_eq!(wait(&retries, now + PACE), Duration::from_millis(80), "it is as new");
    }

    #[test]
    fn what_waits_is_tried_at_once_when_a_retry_succeeds_and_slowly_while_retries_fail() {
        let (mut retries, now) = (Retries::new(BACKOFF), Instant::now());
        (1..=4).for_each(|n| retries.failed(job(n), now, Duration::ZERO, Cause::Around));
        let due = now + BACKOFF.first;
        let first = retries.next().unwrap();
        retries.failed(first, due, Duration::ZERO, Cause::Around);
        assert_eq!(wait(&retries, due), PACE, "three are due, and wait");
        let second = retries.next().unwrap();
        retries.succeeded(second);
        assert_eq!(wait(&retries, now), Duration::ZERO, "the trouble seems to be over");
    }

    #[test]
    fn only_jobs_that_could_be_done_are_held_up() {
        let (mut retries, now) = (Retries::new(BACKOFF), Instant::now());
        let fail = |retries: &mut Retries, n, cause| {
            retries.failed(job(n), now, Duration::ZERO, cause);
            retries.are_held_up()
        };
        assert!(!fail(&mut retries, 1, Cause::Own), "its data are damaged");
        assert!(fail(&mut retries, 2, Cause::Around));
        assert!(fail(&mut retries, 1, Cause::Around));
        assert!(fail(&mut retries, 1, Cause::Own), "the other one is still held up");
        retries.succeeded(job(2));
        assert!(!retries.are_held_up());
        assert!(fail(&mut retries, 3, Cause::Around));
        retries.let_go();
        assert!(!retries.are_held_up());
    }

    #[test]
    fn i18_the_memory_of_failures_is_bounded() {
        let (mut retries, now) = (Retries::new(BACKOFF), Instant::now());
        for n in 0..3 * Retries::JOBS_MAX as u32 {
            retries.failed(job(n), now, Duration::ZERO, Cause::Around);
        }
        assert_eq!((retries.failed.len(), retries.due.len()), (Retries::JOBS_MAX, Retries::JOBS_MAX));
        assert_eq!(retries.let_go().len(), Retries::JOBS_MAX);
    }
}
