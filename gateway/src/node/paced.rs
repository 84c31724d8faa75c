//! Work on many sessions, spread evenly over a time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How many sessions are woken or closed at a time.
const AT_ONCE: usize = 16;

/// Calls `each` on all, in order, spread evenly over `time`; does not wait after the last few. If the future is
/// dropped, the rest is left out.
pub(crate) async fn paced<T>(all: &[T], time: Duration, mut each: impl FnMut(&T)) {
    let started = Instant::now();
    for (n, chunk) in all.chunks(AT_ONCE).enumerate() {
        until_due(started, time, n * AT_ONCE, all.len()).await;
        chunk.iter().for_each(&mut each);
    }
}

/// Waits until element `n` of `all` is due, when they are spread evenly over `time`. Cancel safe.
pub(crate) async fn until_due(started: Instant, time: Duration, n: usize, all: usize) {
    let due = time.mul_f64(n as f64 / all as f64);
    if !due.is_zero() {
        sleep_until(started + due).await;
    }
}
