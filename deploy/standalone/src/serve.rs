//! The server: one process that holds the stores, a gateway and a timeline worker.
//!
//! ```text
//!   bind ▶ open stores (lock) ▶ secrets ▶ start tasks ▶ announce ──┬─ signal ───▶ drain ▶ exit 0
//!                                                                       └─ a task died ▶ drain ▶ exit 1
//! ```
//!
//! Invariants: nothing is served before everything is open, and no two processes share a data
//! directory. A server is whole or gone: when one of its tasks ends or panics, the others are
//! stopped too. A second signal ends the process at once, which is safe, since whatever was
//! answered is on disk.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_embedded::Embedded;
use feedgate_gateway::{Gateway, Keys, Parts};
use feedgate_timeline::Worker;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::banner::Banner;
use crate::ports::Ports;
use crate::settings::Settings;
use crate::{data, secrets};

/// The name of the only node in the session pool.
const NODE: &str = "standalone";

/// What a shell expects of a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// For tasks that are cut short to let go of the stores.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Serves until a signal. `Err` if it could not start, or could not go on.
pub(crate) fn run(settings: Settings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.log).context("log")?;
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(settings));
    runtime.shutdown_timeout(LAST_WAIT);
    served
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let data = data::make(&settings.data)?;
    let started = tokio::select! {
        started = start(settings, &data) => started?,
        () = signals.next() => return Ok(()),
    };
    let _announced = data::announce(&data, &started.url)?;
    started.run_until(signals).await
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Cancel safe.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A server whose tasks run.
struct Started {
    /// Where the API key is taken.
    url: String,
    banner: String,
    tasks: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
    stores: Embedded,
}

async fn start(settings: Settings, data: &Path) -> anyhow::Result<Started> {
    let ports = Ports::bind(&settings).await?;
    let (path, buckets) = (data.to_owned(), settings.buckets);
    let stores = tokio::task::spawn_blocking(move || Embedded::open(&path, buckets)).await??;
    let secrets = secrets::open_or_make(data)?;

    let feeds = Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), settings.backfill));
    let timeline = settings.timeline.settings();
    let worker = Worker::new(feeds.clone(), stores.jobs.clone(), stores.doorbell.clone(), timeline);
    let gateway = Gateway::new(Parts {
        feeds,
        publisher: Arc::new(Publisher::new(stores.archive.clone(), stores.jobs.clone())),
        sessions: stores.sessions.clone(),
        doorbell: stores.doorbell.clone(),
        jobs: stores.jobs.clone(),
        keys: Keys::new(&secrets.api_key, secrets.token_key.as_bytes()),
        settings: settings.gateway,
        node: NODE.to_owned(),
    });

    let banner = banner(&ports, data)?;
    let url = format!("http://{}", ports.backends());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let working = stop.clone();
    tasks.spawn(async move {
        worker.run(working).await;
        Ok(())
    });
    for (listener, surface) in ports.listeners {
        let serving = feedgate_gateway::serve(gateway.clone(), listener, surface, stop.clone().cancelled_owned());
        tasks.spawn(async move { serving.await.context("the gateway") });
    }
    Ok(Started { url, banner, tasks, stop, stores })
}

impl Started {
    async fn run_until(mut self, mut signals: Signals) -> anyhow::Result<()> {
        show(&self.banner);
        let ended = run_tasks(&mut self.tasks, &self.stop, signals.next()).await;
        let drain = async {
            let drained = drain_tasks(&mut self.tasks).await;
            let closed = self.stores.close().await.context("the stores did not close");
            ended.and(drained).and(closed)
        };
        tokio::select! {
            stopped = drain => stopped,
            () = signals.next() => exit(INTERRUPTED),
        }
    }
}

/// Waits for the signal, or for the first task to end, which none does by itself; then tells all of
/// them to stop.
async fn run_tasks(
    tasks: &mut JoinSet<anyhow::Result<()>>,
    stop: &CancellationToken,
    signal: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let ended = tokio::select! {
        () = signal => {
            tracing::info!("stopping; once more to stop at once");
            Ok(())
        }
        Some(ended) = tasks.join_next() => Err(match ended {
            Ok(Ok(())) => anyhow!("a part of the server ended by itself"),
            Ok(Err(error)) => error.context("a part of the server failed"),
            Err(panic) => anyhow!(panic).context("a part of the server panicked"),
        }),
    };
    stop.cancel();
    ended
}

/// Waits for every task; the first failure counts.
async fn drain_tasks(tasks: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut drained = Ok(());
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.map_err(anyhow::Error::from).and_then(|done| done);
        drained = drained.and(ended.context("a part of the server did not stop cleanly"));
    }
    drained
}

fn banner(ports: &Ports, data: &Path) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let here = std::env::current_dir().context("the current directory is not known")?;
    let (devices, backends) = (ports.devices().to_string(), ports.backends().to_string());
    let banner = Banner { devices: &devices, backends: &backends, data, program: &program, here: &here };
    Ok(banner.text())
}

/// Nobody who reads stdout is no reason not to serve.
fn show(banner: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{banner}").and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::future::{pending, ready};

    /// Two tasks: one that stops when told to, and `other`.
    async fn ends(
        other: impl Future<Output = anyhow::Result<()>> + Send + 'static,
        signal: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let told = stop.clone();
        tasks.spawn(async move {
            told.cancelled().await;
            Ok(())
        });
        tasks.spawn(other);
        let ended = run_tasks(&mut tasks, &stop, signal).await;
        assert!(stop.is_cancelled());
        tasks.join_next().await;
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
        let mut tasks = JoinSet::new();
        tasks.spawn(async { bail!("positions were not saved") });
        tasks.spawn(async { Ok(()) });
        let error = format!("{:#}", drain_tasks(&mut tasks).await.unwrap_err());
        assert!(error.contains("positions were not saved") && tasks.is_empty(), "{error}");
    }
}
