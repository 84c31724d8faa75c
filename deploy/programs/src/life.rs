//! Runs the parts of a process as tasks, until a signal comes or one of the parts ends by itself.
//!
//! ```text
//!   parts run ──┬─ signal ─────────▶ stop ▶ every part drains ▶ exit 0
//!               ├─ hand-over ──────▶ stop ▶ every part drains, within seconds ▶ another program is executed
//!               └─ a part ended ───▶ stop ▶ every part drains, within seconds ▶ exit 1
//! ```
//!
//! Invariants: a process runs all its parts or none: when one of them ends or panics, the others are stopped too. A
//! second signal ends the process at once, which is safe, since every accepted write is durable.

use std::io::{self, IsTerminal};
use std::process::exit;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::passed::{Began, Held};

/// The exit code that a shell expects of a program that SIGINT has ended.
const INTERRUPTED: i32 = 130;

/// How long a process that has failed may drain, so that its supervisor can start another one soon.
const FAILED_WITHIN: Duration = Duration::from_secs(5);

/// How long a process that hands over may drain. During this time no connection is accepted. The next program repeats
/// the work that is cut short.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(3);

/// How long tasks that are cut short may take to release the stores.
pub(crate) const LAST_WAIT: Duration = Duration::from_secs(2);

/// The exit code that a shell expects of a program that has failed.
const FAILED: i32 = 1;

/// The signals that end a process: SIGINT, SIGTERM, and SIGHUP if it comes because the terminal is gone.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Whether the process was started on a terminal.
    on_terminal: bool,
}

impl Signals {
    /// Makes each of these signals an event from now on, which does not end the process.
    pub(crate) fn new() -> std::io::Result<Self> {
        let [interrupt, terminate, hang_up] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let on_terminal = io::stderr().is_terminal();
        Ok(Self { interrupt: interrupt?, terminate: terminate?, hang_up: hang_up?, on_terminal })
    }

    /// Waits for the next signal that ends the process. Cancel safe.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = gone(&mut self.hang_up, self.on_terminal) => {}
        }
    }
}

/// Waits for a SIGHUP after which there is no terminal any more. While there is one, or if there never was one, the
/// signal asks for a reload. Cancel safe.
async fn gone(hang_up: &mut Signal, on_terminal: bool) {
    loop {
        hang_up.recv().await;
        if on_terminal && !io::stderr().is_terminal() {
            return;
        }
    }
}

/// How a process that did not fail has ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The process was told to stop.
    Stopped,
    /// Another program goes on with the ports of the process.
    HandsOver {
        /// The listeners of its ports, still open.
        held: Vec<Held>,
        /// The moment from which no connection was accepted.
        began: Began,
    },
}

/// The parts of a process, each a task.
#[derive(Default)]
pub(crate) struct Parts {
    tasks: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Parts {
    /// The token that is cancelled when all parts are to stop.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Adds a part, which must end when the token [`Self::stop`] is cancelled, and not before.
    pub(crate) fn add(&mut self, part: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        self.tasks.spawn(part);
    }

    /// Runs until a signal, until `leaves` or until the end of a part, drains, and then runs `last` in any case. Gives
    /// the first failure; after `leaves` it gives the ports that are `held`, whatever has failed then, since the next
    /// program goes on from what is on the disk. A second signal exits the process, and so does a drain after a failure
    /// that takes too long; then the failure is printed under the name `program`.
    pub(crate) async fn run_until(
        mut self,
        program: &str,
        mut signals: Signals,
        leaves: impl Future<Output = ()>,
        held: Vec<Held>,
        last: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<Ended> {
        let ended = tokio::select! {
            ended = self.run(signals.next()) => ended.map(|()| false),
            () = leaves => {
                tracing::info!("handing over");
                self.stop.cancel();
                Ok(true)
            }
        };
        let (began, failed) = (Began::now(), ended.as_ref().err().map(crate::told));
        let drain = async {
            if let Ok(true) = ended {
                self.drain_soon().await;
                if let Err(error) = last.await {
                    tracing::error!("the next program goes on from what is on the disk: {error:#}");
                }
                return Ok(Ended::HandsOver { held, began });
            }
            // From now on the ports are open as long as they are served.
            drop(held);
            let drained = self.drain().await;
            let last = last.await;
            ended.and(drained).and(last).map(|()| Ended::Stopped)
        };
        tokio::select! {
            stopped = drain => stopped,
            () = signals.next() => exit(INTERRUPTED),
            // The drain may be waiting for the part that has failed.
            failed = too_long(failed) => {
                crate::say(program, &failed);
                exit(FAILED)
            }
        }
    }

    /// Waits for the signal, or for the first part to end, which is a failure; then tells all parts to stop.
    async fn run(&mut self, signal: impl Future<Output = ()>) -> anyhow::Result<()> {
        let ended = tokio::select! {
            () = signal => {
                tracing::info!("stopping; once more to stop at once");
                Ok(())
            }
            Some(ended) = self.tasks.join_next() => Err(match ended {
                Ok(Ok(())) => anyhow!("a part of the server ended by itself"),
                Ok(Err(error)) => error.context("a part of the server failed"),
                Err(panic) => anyhow!(panic).context("a part of the server panicked"),
            }),
        };
        self.stop.cancel();
        ended
    }

    /// Waits for every part to end, but not for long: those that are left are cut short.
    async fn drain_soon(&mut self) {
        match timeout(HANDED_OVER_WITHIN, self.drain()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("the next program goes on from what is on the disk: {error:#}"),
            Err(_) => {
                let left = self.tasks.len();
                tracing::warn!(left, "parts of the server did not end in time, and the next program does their work");
                self.tasks.shutdown().await;
            }
        }
    }

    /// Waits for every part to end, and gives the first failure.
    async fn drain(&mut self) -> anyhow::Result<()> {
        let mut drained = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.map_err(anyhow::Error::from).and_then(|done| done);
            drained = drained.and(ended.context("a part of the server did not stop cleanly"));
        }
        drained
    }
}

/// Gives the failure once the drain after it has taken too long; waits for ever if nothing has failed.
async fn too_long(failed: Option<String>) -> String {
    match failed {
        Some(failed) => {
            tokio::time::sleep(FAILED_WITHIN).await;
            failed
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::future::{pending, ready};

    /// Runs two parts: one that stops when told to, and `other`.
    async fn ends(
        other: impl Future<Output = anyhow::Result<()>> + Send + 'static,
        signal: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let mut parts = Parts::default();
        let told = parts.stop();
        parts.add(async move {
            told.cancelled().await;
            Ok(())
        });
        parts.add(other);
        let ended = parts.run(signal).await;
        assert!(parts.stop.is_cancelled());
        parts.tasks.join_next().await;
        ended
    }

    #[tokio::test]
    async fn a_part_that_dies_takes_the_server_with_it() {
        let panic = ends(async { panic!("as this test wants it") }, pending()).await;
        assert!(panic.unwrap_err().to_string().contains("panicked"));
        let failure = ends(async { bail!("no disk") }, pending()).await;
        assert!(format!("{:#}", failure.unwrap_err()).contains("failed: no disk"));
        let end = ends(async { Ok(()) }, pending()).await;
        assert!(end.unwrap_err().to_string().contains("ended by itself"));
    }

    #[tokio::test]
    async fn a_signal_stops_every_part_and_is_no_error() {
        assert!(ends(pending(), ready(())).await.is_ok());
    }

    #[tokio::test]
    async fn a_part_that_fails_while_stopping_is_told_after_all_have_stopped() {
        let mut parts = Parts::default();
        parts.add(async { bail!("positions were not saved") });
        parts.add(async { Ok(()) });
        let error = format!("{:#}", parts.drain().await.unwrap_err());
        assert!(error.contains("positions were not saved") && parts.tasks.is_empty(), "{error}");
    }
}
