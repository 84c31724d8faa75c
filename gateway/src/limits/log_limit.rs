//! Bounds the log lines of one sort, so that neither a flood of refusals nor an outage that every device notices fills
//! the disk.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The most lines of one sort in [`EVERY_MS`].
const LINES: u32 = 10;

const EVERY_MS: u64 = 10_000;

/// The log lines of one sort.
#[derive(Debug)]
pub(crate) struct LogLimit {
    /// When the first line was asked for.
    started: OnceLock<Instant>,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    begun_ms: u64,
    logged: u32,
    suppressed: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        let window = Window { begun_ms: 0, logged: 0, suppressed: 0 };
        Self { started: OnceLock::new(), window: parking_lot::const_mutex(window) }
    }

    /// Gives `None` if no more lines may be written now; otherwise how many were left out since the last line.
    pub(crate) fn admit(&self) -> Option<u64> {
        let elapsed = self.started.get_or_init(Instant::now).elapsed();
        self.window.lock().admit(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Window {
    fn admit(&mut self, now_ms: u64) -> Option<u64> {
        if now_ms >= self.begun_ms + EVERY_MS {
            (self.begun_ms, self.logged) = (now_ms, 0);
        }
        if self.logged == LINES {
            self.suppressed += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_some_lines_and_a_count() {
        let (limit, window) = (LogLimit::new(), Duration::from_millis(EVERY_MS));
        let logged = (0..1000).filter(|_| limit.admit().is_some()).count();
        assert_eq!(logged, 10);
        advance(window - Duration::from_millis(1)).await;
        assert_eq!(limit.admit(), None);
        advance(Duration::from_millis(1)).await;
        assert_eq!(limit.admit(), Some(991), "the next line counts what was left out");
        assert_eq!(limit.admit(), Some(0));
    }
}
