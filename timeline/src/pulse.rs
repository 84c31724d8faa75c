//! Whether the worker's loops come round. One that hangs cannot say so itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Felt by whoever judges whether the worker is alive: whether it takes jobs and sweeps. A cleaner that hangs drops no
/// inboxes; that kills nobody.
#[derive(Debug)]
pub struct Pulse {
    born: Instant,
    /// The last round of each loop, in ms since `born`.
    taking: AtomicU64,
    sweeping: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { born: Instant::now(), taking: AtomicU64::new(0), sweeping: AtomicU64::new(0) }
    }
}

impl Pulse {
    /// How long ago the loop that is more behind has come round.
    pub fn silence(&self) -> Duration {
        let last = self.taking.load(Ordering::Relaxed).min(self.sweeping.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(Duration::from_millis(last))
    }

    pub(crate) fn took(&self) {
        self.taking.store(self.now(), Ordering::Relaxed);
    }

    pub(crate) fn swept(&self) {
        self.sweeping.store(self.now(), Ordering::Relaxed);
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
    }
}
