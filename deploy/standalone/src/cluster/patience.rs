//! How a start waits for an engine: for some time if it may still come up, not at all if waiting cannot help.
//!
//! ```text
//!   connect ──▶ there
//!      ├─ refused ───────▶ the end, at once: a password, a version, a setting
//!      └─ not there yet ─▶ said once in a while, tried again ──▶ the end, when the time is over
//! ```
//!
//! Invariant: every message names the engine, its setting and its URL, without the password.

use std::fmt::Display;
use std::time::Duration;

use anyhow::anyhow;
use tokio::time::{Instant, sleep};

use crate::url::StoreUrl;

/// How long to wait between two tries.
const AGAIN: Duration = Duration::from_millis(500);

/// The least time between two lines in the log.
const SAID_EVERY: Duration = Duration::from_secs(5);

/// Words in errors that only a person can repair. They are those of the engines and of our clients, which name the
/// setting that must be changed. Lower case.
const HOPELESS: [&str; 10] = [
    "is damaged",
    "archive_url",
    "inbox_url",
    "bus_url",
    "or newer",
    "is not the url",
    "authentication",
    "wrongpass",
    "authorization violation",
    "jetstream is not on",
];

/// An engine that is waited for.
pub(super) struct Engine<'a> {
    /// The engine's name, as people know it.
    pub(super) name: &'static str,
    /// The setting that holds its URL.
    pub(super) setting: &'static str,
    /// The URL in that setting.
    pub(super) url: &'a StoreUrl,
}

/// How long one start waits, for all engines together.
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

    /// Calls `connect` until it succeeds, is refused, or the time is over. Cancel safe.
    pub(super) async fn until_there<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        engine: &Engine<'_>,
        connect: impl Fn() -> F,
    ) -> anyhow::Result<T> {
        let Engine { name, setting, url } = engine;
        let mut said: Option<Instant> = None;
        loop {
            let error = match tokio::time::timeout_at(self.until.max(Instant::now() + AGAIN), connect()).await {
                Ok(Ok(there)) => return Ok(there),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if is_hopeless(&error) {
                return Err(anyhow!("{name} ({setting} = \"{url}\"): {error}"));
            }
            if Instant::now() + AGAIN >= self.until {
                return Err(anyhow!(
                    "{name} ({setting} = \"{url}\") was not there within {} s (wait_for_stores_secs): {error}",
                    self.secs
                ));
            }
            if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
                tracing::warn!("waiting for {name} at {url}: {error}");
                said = Some(Instant::now());
            }
            sleep(AGAIN).await;
        }
    }
}

fn is_hopeless(error: &str) -> bool {
    let error = error.to_lowercase();
    HOPELESS.iter().any(|words| error.contains(words))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    async fn wait(answers: &[&'static str]) -> (anyhow::Result<()>, usize) {
        let asked = Cell::new(0);
        let url = StoreUrl::new("redis://:secret@a:1");
        let connect = || {
            let answer = answers[asked.get().min(answers.len() - 1)];
            asked.set(asked.get() + 1);
            ready(if answer == "there" { Ok(()) } else { Err(answer) })
        };
        let engine = Engine { name: "Redis", setting: "inbox_url", url: &url };
        (Patience::new(10).until_there(&engine, connect).await, asked.get())
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_comes_late_is_waited_for() {
        let (there, asked) = wait(&["connection refused", "connection refused", "there"]).await;
        assert!(there.is_ok() && asked == 3);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_comes_is_named_without_its_password() {
        let (gone, asked) = wait(&["connection refused"]).await;
        let error = gone.unwrap_err().to_string();
        let right = "Redis (inbox_url = \"redis://***@a:1\") was not there within 10 s (wait_for_stores_secs): ";
        assert!(error.starts_with(right) && asked > 10, "{asked} {error}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_waiting_cannot_mend_is_said_at_once() {
        for refusal in [
            "PostgreSQL: password authentication failed (check user and password in archive_url, and pg_hba.conf)",
            "Redis: WRONGPASS invalid username-password pair or user is disabled.",
            "no nats-server at a:4222: Authorization Violation",
            "this nats-server is 2.9.10; Feedgate needs 2.10 or newer",
        ] {
            let (refused, asked) = wait(&[refusal]).await;
            assert!(refused.unwrap_err().to_string().ends_with(refusal));
            assert_eq!(asked, 1, "{refusal}");
        }
    }
}
