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

use std::io::{ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_embedded::Embedded;
use feedgate_gateway::{Gateway, Keys, Parts, Surface};
use feedgate_timeline::Worker;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::banner::Banner;
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
    let listeners = Listeners::bind(&settings).await?;
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

    let banner = listeners.banner(data)?;
    let url = format!("http://{}", listeners.backends());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let working = stop.clone();
    tasks.spawn(async move {
        worker.run(working).await;
        Ok(())
    });
    for (listener, surface) in listeners.all {
        let serving = feedgate_gateway::serve(gateway.clone(), listener, surface, stop.clone().cancelled_owned());
        tasks.spawn(async move { serving.await.context("the gateway") });
    }
    Ok(Started { url, banner, tasks, stop, stores })
}

impl Started {
    async fn run_until(mut self, mut signals: Signals) -> anyhow::Result<()> {
        show(&self.banner);
        let died = tokio::select! {
            () = signals.next() => None,
            Some(ended) = self.tasks.join_next() => Some(ended),
        };
        self.stop.cancel();
        if died.is_none() {
            tracing::info!("stopping; once more to stop at once");
        }
        let drain = async {
            let mut failed = died.map(|ended| match ended {
                Ok(Ok(())) => anyhow!("a part of the server ended by itself"),
                Ok(Err(error)) => error.context("a part of the server failed"),
                Err(panic) => anyhow!(panic).context("a part of the server panicked"),
            });
            while let Some(ended) = self.tasks.join_next().await {
                let error = ended.map_err(|panic| anyhow!(panic)).and_then(|done| done).err();
                failed = failed.or(error);
            }
            let closed = self.stores.close().await.context("the stores did not close");
            failed.map_or(closed, Err)
        };
        tokio::select! {
            drained = drain => drained,
            () = signals.next() => exit(INTERRUPTED),
        }
    }
}

/// The ports, bound before anything else is opened: a busy one is the likeliest mistake.
struct Listeners {
    all: Vec<(TcpListener, Surface)>,
    addresses: Vec<SocketAddr>,
}

impl Listeners {
    async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let wanted = if settings.splits() {
            vec![("listen", settings.listen, Surface::Readers), ("admin-listen", settings.admin_listen, Surface::All)]
        } else {
            vec![("listen", settings.listen, Surface::All)]
        };
        let mut bound = Self { all: Vec::new(), addresses: Vec::new() };
        for (flag, address, surface) in wanted {
            let listener = match TcpListener::bind(address).await {
                Ok(listener) => listener,
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    bail!(
                        "{address} is in use by another program; stop that one, or choose another with --{flag} IP:PORT"
                    )
                }
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot listen on {address}; choose another with --{flag} IP:PORT"));
                }
            };
            bound.addresses.push(listener.local_addr()?);
            bound.all.push((listener, surface));
        }
        Ok(bound)
    }

    fn devices(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The last one takes the API key.
    fn backends(&self) -> SocketAddr {
        self.addresses[self.addresses.len() - 1]
    }

    fn banner(&self, data: &Path) -> anyhow::Result<String> {
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let here = std::env::current_dir().context("the current directory is not known")?;
        let (devices, backends) = (self.devices().to_string(), self.backends().to_string());
        let banner = Banner { devices: &devices, backends: &backends, data, program: &program, here: &here };
        Ok(banner.text())
    }
}

/// Nobody who reads stdout is no reason not to serve.
fn show(banner: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{banner}").and_then(|()| stdout.flush());
}
