//! Whether the loops of a worker go on, and whether its work gets done. A loop that hangs cannot say so itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The value of [`Pulse::waiting`] while no work waits.
const RESTS: u64 = u64::MAX;

/// The signs of life of a worker, from which `/healthz` is answered: whether it takes jobs and sweeps. A
/// cleaner that hangs drops no inboxes, and the worker stays healthy.
#[derive(Debug)]
pub struct Pulse {
    born: Instant,
    /// The last round of each loop, in ms since `born`.
    taking: AtomicU64,
    sweeping: AtomicU64,
    /// Since when work waits that could be done and no step was done, in ms since `born`; or [`RESTS`].
    waiting: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        let (taking, sweeping, waiting) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(RESTS));
        Self { born: Instant::now(), taking, sweeping, waiting }
    }
}

impl Pulse {
    /// How long ago the last round of a loop was. Of the two loops, the one that has been silent for longer counts.
    pub fn silence(&self) -> Duration {
        let last = self.taking.load(Ordering::Relaxed).min(self.sweeping.load(Ordering::Relaxed));
        self.since(last)
    }

    /// How long ago the sweep last looked for outstanding events.
    pub fn sweep_age(&self) -> Duration {
        self.since(self.sweeping.load(Ordering::Relaxed))
    }

    /// For how long this worker has had work that could be done, and has done no step of it. Zero while no such work
    /// waits: what is damaged, or panics, waits for somebody who mends it, and not for a restart.
    pub fn standstill(&self) -> Duration {
        match self.waiting.load(Ordering::Relaxed) {
            RESTS => Duration::ZERO,
            since => self.since(since),
        }
    }

    /// Notes that work waits from now on, if no work waited before.
    pub(crate) fn waits(&self) {
        _ = self.waiting.compare_exchange(RESTS, self.now(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A step of the work was done.
    pub(crate) fn stepped(&self) {
        let waits = |since: u64| (since != RESTS).then(|| self.now());
        _ = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, waits);
    }

    /// There is no work left.
    pub(crate) fn rests(&self) {
        self.waiting.store(RESTS, Ordering::Relaxed);
    }

    pub(crate) fn took(&self) {
        self.taking.store(self.now(), Ordering::Relaxed);
    }

    pub(crate) fn swept(&self) {
        self.sweeping.store(self.now(), Ordering::Relaxed);
    }

    /// How long ago the time was that lies `ms` milliseconds after `born`.
    fn since(&self, ms: u64) -> Duration {
        self.born.elapsed().saturating_sub(Duration::from_millis(ms))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn the_silence_is_that_of_the_loop_that_is_more_behind() {
        let pulse = Pulse::default();
        advance(Duration::from_secs(10)).await;
        pulse.took();
        assert_eq!(pulse.silence(), Duration::from_secs(10), "the sweep has never come round");
        pulse.swept();
        assert_eq!(pulse.silence(), Duration::ZERO);
        advance(Duration::from_secs(3)).await;
        pulse.swept();
        assert_eq!(pulse.silence(), Duration::from_secs(3), "it takes no jobs");
        assert_eq!(pulse.sweep_age(), Duration::ZERO, "it sweeps");
    }

    #[tokio::test(start_paused = true)]
    async fn a_standstill_begins_with_the_work_or_its_last_step_and_ends_with_the_work() {
        let (pulse, second) = (Pulse::default(), Duration::from_secs(1));
        advance(second).await;
        pulse.stepped();
        assert_eq!(pulse.standstill(), Duration::ZERO, "there is no work");
        pulse.waits();
        advance(second).await;
        pulse.waits();
        assert_eq!(pulse.standstill(), second, "more work does not begin it anew");
        pulse.stepped();
        advance(3 * second).await;
        assert_eq!(pulse.standstill(), 3 * second);
        pulse.rests();
        assert_eq!(pulse.standstill(), Duration::ZERO);
    }
}
