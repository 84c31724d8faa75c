//! How a start waits for an engine: for some time if the engine may still come up, not at all if waiting cannot help.
//!
//! ```text
//!   connect ──▶ there
//!      ├─ refused ───────▶ the end, at once: a password, a version, a setting
//!      └─ not there yet ─▶ said once in a while, tried again ──▶ the end, when the time is over
//! ```
//!
//! Invariant: every message names the engine, its setting and its URL, without the password.

use std::error::Error;
use std::time::Duration;

use anyhow::anyhow;
use feedgate_common::StoreError;
use feedgate_nats::BusError;
use tokio::time::{Instant, sleep};

use crate::url::StoreUrl;

/// How long to wait between two tries.
const AGAIN: Duration = Duration::from_millis(500);

/// The least time between two lines in the log.
const SAID_EVERY: Duration = Duration::from_secs(5);

/// The longest time that one try of an engine waits for its answer, if the try does more once there is one.
const TRY: Duration = Duration::from_secs(5);

/// Why a connection failed.
pub(super) trait Failure: Error + Send + Sync + 'static {
    /// Whether waiting cannot help, since a person has to change or repair something.
    fn is_hopeless(&self) -> bool;
}

impl Failure for StoreError {
    fn is_hopeless(&self) -> bool {
        matches!(self, Self::Misconfigured(_) | Self::Corrupt(_))
    }
}

impl Failure for BusError {
    fn is_hopeless(&self) -> bool {
        !self.may_pass()
    }
}

/// An engine for which a start waits.
pub(super) struct Engine<'a> {
    /// The engine's name, as people know it.
    pub(super) name: &'static str,
    /// The setting that holds its URL.
    pub(super) setting: &'static str,
    /// The URL in that setting.
    pub(super) url: &'a StoreUrl,
}

/// How long a start waits: once for PostgreSQL, and once for all other engines together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    until: Instant,
    secs: u32,
}

impl Patience {
    /// Waits `secs` seconds from now on.
    pub(super) fn new(secs: u32) -> Self {
        Self { until: Instant::now() + Duration::from_secs(secs.into()), secs }
    }

    /// How long the next try may wait for an answer.
    pub(super) fn of_a_try(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now()).clamp(AGAIN, TRY)
    }

    /// Calls `connect` until it succeeds, is refused, or the time is over. Cancel safe.
    ///
    /// # Errors
    /// The last failure of `connect`, which is the source of the error.
    pub(super) async fn until_there<T, E: Failure, F: Future<Output = Result<T, E>>>(
        &self,
        engine: &Engine<'_>,
        connect: impl Fn() -> F,
    ) -> anyhow::Result<T> {
        let bounded =
            || async { tokio::time::timeout_at(self.until.max(Instant::now() + AGAIN), connect()).await.ok() };
        self.until(engine, bounded).await
    }

    /// As [`until_there`](Self::until_there), but no try is cut short: `connect` itself waits at most
    /// [`of_a_try`](Self::of_a_try) for an answer, and then has work that ends in its own time. Cancel safe.
    ///
    /// # Errors
    /// The last failure of `connect`, which is the source of the error.
    pub(super) async fn until_ready<T, E: Failure, F: Future<Output = Result<T, E>>>(
        &self,
        engine: &Engine<'_>,
        connect: impl Fn() -> F,
    ) -> anyhow::Result<T> {
        self.until(engine, || async { Some(connect().await) }).await
    }

    /// Calls `connect`, which answers `None` if it was cut short, until it succeeds, is refused, or the time is over.
    async fn until<T, E: Failure, F: Future<Output = Option<Result<T, E>>>>(
        &self,
        engine: &Engine<'_>,
        connect: impl Fn() -> F,
    ) -> anyhow::Result<T> {
        let Engine { name, setting, url } = engine;
        let mut said: Option<Instant> = None;
        // The error of the last try that was not cut short.
        let mut heard = "no answer".to_owned();
        loop {
            let error = match connect().await {
                Some(Ok(there)) => return Ok(there),
                Some(Err(error)) if error.is_hopeless() => {
                    return Err(anyhow!(error).context(format!("{name} ({setting} = \"{url}\")")));
                }
                Some(Err(error)) => {
                    heard = error.to_string();
                    anyhow!(error)
                }
                None => anyhow!(heard.clone()),
            };
            if Instant::now() + AGAIN >= self.until {
                return Err(error.context(format!(
                    "{name} ({setting} = \"{url}\") was not there within {} s (wait_for_stores_secs)",
                    self.secs
                )));
            }
            if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
                tracing::warn!("waiting for {name} at {url}: {error}");
                said = Some(Instant::now());
            }
            sleep(AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;
    use std::io;

    use super::*;

    /// Waits for an engine whose tries have these outcomes; the last one goes on.
    async fn wait<E: Failure>(tries: &[impl Fn() -> Result<(), E>]) -> (anyhow::Result<()>, usize) {
        let tried = Cell::new(0);
        let url = StoreUrl::new("redis://:secret@a:1");
        let connect = || {
            let outcome = tries[tried.get().min(tries.len() - 1)]();
            tried.set(tried.get() + 1);
            ready(outcome)
        };
        let engine = Engine { name: "Redis", setting: "inbox_url", url: &url };
        (Patience::new(10).until_there(&engine, connect).await, tried.get())
    }

    fn away() -> Result<(), StoreError> {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        Err(StoreError::unavailable(&refused).with_source(refused))
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_comes_late_is_waited_for() {
        let (there, tried) = wait(&[away, away, || Ok(())]).await;
        assert!(there.is_ok() && tried == 3);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_comes_is_named_without_its_password_and_its_error_is_kept() {
        let (gone, tried) = wait(&[away]).await;
        let error = gone.unwrap_err();
        let right = "Redis (inbox_url = \"redis://***@a:1\") was not there within 10 s (wait_for_stores_secs)";
        assert!(error.to_string() == right && tried > 10, "{tried} {error}");
        assert!(matches!(error.downcast_ref(), Some(StoreError::Unavailable(_))));
        let io = error.root_cause().downcast_ref::<io::Error>().map(io::Error::kind);
        assert_eq!(io, Some(io::ErrorKind::ConnectionRefused));
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_cut_short_says_what_the_one_before_said() {
        let url = StoreUrl::new("rediss://a:1");
        let engine = Engine { name: "Redis", setting: "inbox_url", url: &url };
        let connect = || async {
            sleep(Duration::from_secs(2)).await;
            Err::<(), _>(StoreError::unavailable("silent"))
        };
        let error = Patience::new(3).until_there(&engine, connect).await.unwrap_err();
        assert!(error.root_cause().to_string().ends_with("silent"), "{error:#}");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_begins_once_the_engine_is_there_is_not_cut_short() {
        let url = StoreUrl::new("postgres://a:1");
        let engine = Engine { name: "PostgreSQL", setting: "archive_url", url: &url };
        let patience = Patience::new(3);
        let migrate = || async {
            sleep(Duration::from_secs(600)).await;
            Ok::<_, StoreError>(())
        };
        assert!(patience.until_ready(&engine, migrate).await.is_ok());
        assert_eq!(patience.of_a_try(), AGAIN);
        assert_eq!((Patience::new(2).of_a_try(), Patience::new(60).of_a_try()), (Duration::from_secs(2), TRY));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waiting_cannot_mend_is_said_at_once() {
        for refusal in [StoreError::misconfigured("a password"), StoreError::corrupt("a row")] {
            let (refused, tried) = wait(&[|| Err(refusal.clone())]).await;
            assert_eq!(refused.unwrap_err().root_cause().to_string(), refusal.to_string());
            assert_eq!(tried, 1, "{refusal}");
        }
        let (refused, tried) = wait(&[|| Err(BusError::TooOld("2.9.10".to_owned()))]).await;
        assert!(matches!(refused.unwrap_err().downcast_ref(), Some(BusError::TooOld(_))) && tried == 1);
    }
}
