//! Logs why connections are refused, so that an operator sees it; bounded, so that a flood of refusals does not fill
//! the disk.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::net::address::Client;

/// The most lines about refusals of one sort in [`EVERY_MS`].
const LINES: u32 = 10;

const EVERY_MS: u64 = 10_000;

/// The log lines about refusals of one sort.
#[derive(Debug)]
pub(crate) struct Refusals {
    what: &'static str,
    started: Instant,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    begun_ms: u64,
    logged: u32,
    suppressed: u64,
}

impl Refusals {
    /// The refusals of `what`, such as "a token".
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, started: Instant::now(), window: Mutex::default() }
    }

    /// Logs that `client` was refused just now, unless too many lines were written. `why` must hold nothing that the
    /// client has sent: no token, no header.
    pub(crate) fn log(&self, client: Client, why: &'static str) {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Some(suppressed) = self.window.lock().admit(now_ms) else { return };
        tracing::info!(%client, why, suppressed, "{} was refused", self.what);
    }
}

impl Window {
    /// Gives `None` if no more lines may be written now; otherwise how many were left out since the last line.
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
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_some_lines_and_a_count() {
        let mut window = Window::default();
        let logged = (0..1000).filter(|_| window.admit(5).is_some()).count();
        assert_eq!(logged, 10);
        assert_eq!(window.admit(EVERY_MS - 1), None);
        assert_eq!(window.admit(EVERY_MS), Some(991), "the next line counts what was left out");
        assert_eq!(window.admit(EVERY_MS + 1), Some(0));
    }
}
