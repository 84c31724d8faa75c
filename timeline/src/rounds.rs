//! Work that is done again and again after a fixed time, also if the last round failed.

use std::time::Duration;

use feedgate_common::error::Result;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How long [`once`] waits after a failure. Its work may have to lock a table that others need, and who needs the table
/// queues behind it.
const ONCE_AGAIN: Duration = Duration::from_secs(10);

/// Does rounds of one kind of work until the shutdown, which may cut a round off. `what` names a round in the log. A
/// round gives whether there is more to do: then the next one comes at once, and otherwise after `every`, also if the
/// round failed.
pub(crate) async fn again<F: Future<Output = Result<bool>>>(
    what: &'static str,
    every: Duration,
    shutdown: &CancellationToken,
    mut round: impl FnMut() -> F,
) {
    let mut rounds = Rounds::of(what, every, shutdown);
    let mut more = false;
    while rounds.next(async { round().await.map(|has_more| more = has_more) }).await {
        if std::mem::take(&mut more) {
            rounds.next_after(Duration::ZERO);
        }
    }
}

/// Does one piece of work, again and again until it succeeds or the shutdown comes.
pub(crate) async fn once<F: Future<Output = Result<()>>>(
    what: &'static str,
    shutdown: &CancellationToken,
    mut work: impl FnMut() -> F,
) {
    let mut rounds = Rounds::of(what, ONCE_AGAIN, shutdown);
    let mut done = false;
    while !done && rounds.next(async { work().await.map(|()| done = true) }).await {}
}

/// Rounds of one kind of work: the first round at once, each later round a fixed time after the one before.
pub(crate) struct Rounds<'a> {
    what: &'static str,
    ticks: Interval,
    shutdown: &'a CancellationToken,
    failing: bool,
}

impl<'a> Rounds<'a> {
    /// `what` names a round in warnings.
    pub(crate) fn of(what: &'static str, every: Duration, shutdown: &'a CancellationToken) -> Self {
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { what, ticks, shutdown, failing: false }
    }

    /// The next round comes after `wait`.
    pub(crate) fn next_after(&mut self, wait: Duration) {
        self.ticks.reset_after(wait);
    }

    /// Waits until the next round is due and does `work`. False at the shutdown, which may end the wait or the work.
    /// The first failure in a row is a warning: the next round tries again.
    pub(crate) async fn next(&mut self, work: impl Future<Output = Result<()>>) -> bool {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => false,
            done = async { self.ticks.tick().await; work.await } => {
                let failed = done.is_err();
                match done {
                    Err(error) if !self.failing => tracing::warn!(%error, "{} failed; the next one tries again", self.what),
                    Err(error) => tracing::debug!(%error, "{} failed again", self.what),
                    Ok(()) if self.failing => tracing::info!("{} has succeeded again", self.what),
                    Ok(()) => {}
                }
                self.failing = failed;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use feedgate_common::StoreError;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_again_the_next_time_and_a_shutdown_ends_it_even_while_it_hangs() {
        let (start, shutdown) = (Instant::now(), CancellationToken::new());
        let mut rounds = Rounds::of("a test", Duration::from_secs(60), &shutdown);
        let mut at = vec![];
        let mut go_on = true;
        while go_on {
            let work = async {
                at.push(start.elapsed().as_secs());
                if at.len() == 3 {
                    shutdown.cancel();
                    std::future::pending::<()>().await;
                }
                Err(StoreError::unavailable("it is broken"))
            };
            go_on = rounds.next(work).await;
        }
        assert_eq!(at, [0, 60, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_comes_at_once_behind_one_that_left_more_and_work_that_is_done_once_is_over_when_it_succeeds() {
        let (start, shutdown) = (Instant::now(), CancellationToken::new());
        let at = RefCell::new(vec![]);
        let nth = |start: Instant| {
            let mut at = at.borrow_mut();
            at.push(start.elapsed().as_secs());
            at.len()
        };
        let failed = || StoreError::unavailable("it is broken");
        let work = || async { if nth(start) == 3 { Ok(()) } else { Err(failed()) } };
        once("a test", &shutdown, work).await;
        assert_eq!(at.take(), [0, 10, 20]);
        let start = Instant::now();
        let round = || async {
            match nth(start) {
                1 => Ok(true),
                2 => Err(failed()),
                3 => Ok(false),
                _ => {
                    shutdown.cancel();
                    Ok(true)
                }
            }
        };
        again("a test", Duration::from_secs(60), &shutdown, round).await;
        assert_eq!(at.take(), [0, 0, 60, 120]);
    }
}
