//! Whether the worker's loops come round. One that hangs cannot say so itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Felt by whoever judges whether the worker is alive.
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
