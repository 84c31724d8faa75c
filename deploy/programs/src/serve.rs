//! Runs a process that serves: the stores, and over them a gateway, a timeline worker, or both.
//!
//! ```text
//!                                   ┌▶ gateway on `listen`, `admin_listen` ┐
//!   bind ports ▶ secrets ▶ stores ──┤                                      ├▶ announce ▶ until a signal: `life`
//!                                   └▶ worker; alone: `health_listen`      ┘
//! ```
//!
//! Invariants: nothing is served before everything is open, and no two processes share a data directory.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use compact_str::CompactString;
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::named::NamedFeeds;
use feedgate_gateway::{Gateway, Keys, clock};
use feedgate_timeline::{FanOut, Worker};
use tracing_subscriber::EnvFilter;

use crate::banner::{self, Tour};
use crate::data::{self, Announced};
use crate::descriptors;
use crate::health::Health;
use crate::kind::Kind;
use crate::life::{LAST_WAIT, Parts, Signals};
use crate::ports::{self, Ports};
use crate::secrets;
use crate::settings::Settings;
use crate::stores::Stores;

/// The log filter for clients of the stores, which would log more at every start, unless `log` asks for it.
const QUIET: &str = "sqlx=warn,async_nats=warn";

/// What a process does, by the program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Role {
    /// The name of the program.
    pub(crate) name: &'static str,
    /// Whether it serves devices and backends.
    pub(crate) gateway: bool,
    /// Whether it fans out posts.
    pub(crate) worker: bool,
}

impl Role {
    /// The program that does everything in one process.
    pub(crate) const FEEDGATE: Self = Self { name: "feedgate", gateway: true, worker: true };
}

/// Serves until a signal. `accept_loss` is passed to [`Stores::open_embedded`]. Fails if it could not start, or could not go on.
pub(crate) fn run(role: Role, settings: Settings, accept_loss: bool) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", settings.log)).context("log")?;
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(role, settings, accept_loss));
    runtime.shutdown_timeout(LAST_WAIT);
    served
}

async fn serve(role: Role, settings: Settings, accept_loss: bool) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let started = tokio::select! {
        started = start(role, settings, accept_loss) => started?,
        () = signals.next() => return Ok(()),
    };
    show(&started.banner);
    let stopped = started.parts.run_until(signals, started.stores.close()).await;
    drop(started.announced);
    stopped
}

/// A process whose parts run.
struct Started {
    parts: Parts,
    stores: Stores,
    announced: Option<Announced>,
    banner: String,
}

/// Opens the stores that the settings name. With `accept_loss`, embedded ones go on with what is left of their files.
/// Cancel safe.
async fn open(settings: &Settings, accept_loss: bool) -> anyhow::Result<Stores> {
    #[cfg(feature = "cluster")]
    if settings.kind() == Ok(Kind::Cluster) {
        return crate::cluster::open(settings).await;
    }
    Stores::open_embedded(settings, accept_loss).await
}

async fn start(role: Role, mut settings: Settings, accept_loss: bool) -> anyhow::Result<Started> {
    let kind = settings.kind().map_err(|problems| anyhow!(problems.join("\n")))?;
    let descriptors = descriptors::raise();
    if !role.gateway {
        return start_worker(role, &settings).await;
    }
    let ports = Ports::bind(&settings)?;
    let gateway_settings = descriptors::fit(descriptors, ports.listeners.len(), settings.gateway.clone())?;
    settings.data = data::make(&settings.data)?;
    let shared = match kind {
        Kind::Embedded => None,
        Kind::Cluster => Some((data::lock(&settings.data)?, secrets::open(&settings.secrets_dir())?)),
    };
    ensure!(
        kind == Kind::Embedded || !accept_loss,
        "--accept-loss is for what this process keeps in its own files; over shared stores there is nothing to accept"
    );
    let stores = open(&settings, accept_loss).await?;
    let (lock, secrets) = match shared {
        Some((lock, secrets)) => (Some(lock), secrets),
        None => {
            let is_used = !accept_loss && stores.archive.counts().await?.users > 0;
            let made = if is_used { secrets::open_used } else { secrets::open_or_make };
            (None, made(&settings.secrets_dir())?)
        }
    };

    let banner = banner(role, &ports, &settings)?;
    let announced = data::announce(&settings.data, &format!("http://{}", ports.backends()), lock)?;
    let mut parts = Parts::default();
    if let Some(embedded) = &stores.embedded {
        let (died, stop) = (embedded.died(), parts.stop());
        parts.add(async move {
            tokio::select! {
                why = died => Err(anyhow!(why.to_string())),
                () = stop.cancelled() => Ok(()),
            }
        });
    }
    let feeds = feeds(&stores, &settings).await?;
    if role.worker {
        add_worker(&mut parts, worker(&feeds, &stores, &settings));
    }
    // In one process a read of the log costs no more than a read of what the doorbell told.
    let inline_changes = settings.gateway.inline_changes && stores.embedded.is_none();
    let gateway_settings = feedgate_gateway::Settings { inline_changes, ..gateway_settings };
    let keys = Keys::new(&secrets.api_key, secrets.token_key.as_bytes());
    let gateway = Gateway::new(feedgate_gateway::Parts {
        feeds,
        publisher: Arc::new(Publisher::new(stores.archive.clone(), stores.jobs.clone())),
        sessions: stores.sessions.clone(),
        doorbell: stores.doorbell.clone(),
        jobs: stores.jobs.clone(),
        keys: keys.for_audience(&gateway_settings.token_audience),
        settings: gateway_settings,
        node: stores.node.clone(),
    });
    for (listener, surface) in ports.listeners {
        let serving = feedgate_gateway::serve(gateway.clone(), listener, surface, parts.stop().cancelled_owned());
        parts.add(async move { serving.await.context("the gateway") });
    }
    Ok(Started { parts, stores, announced: Some(announced), banner })
}

/// Starts a worker alone: it keeps nothing, and needs a port only for its health.
async fn start_worker(role: Role, settings: &Settings) -> anyhow::Result<Started> {
    let listener = ports::bind("health-listen", settings.health_listen)?;
    let stores = open(settings, false).await?;
    let banner = banner::text(role.name, &[("Health", format!("http://{}/readyz", listener.local_addr()?))], None);
    let worker = worker(&feeds(&stores, settings).await?, &stores, settings);
    let health = Health::new(&stores, worker.pulse(), settings.timeline.silence_max());
    let mut parts = Parts::default();
    add_worker(&mut parts, worker);
    parts.add(health.serve(listener, parts.stop()));
    Ok(Started { parts, stores, announced: None, banner })
}

/// The feeds. The Archive gives the named ones their numbers, the same to every node.
async fn feeds(stores: &Stores, settings: &Settings) -> anyhow::Result<Arc<Feeds>> {
    let names: Vec<CompactString> = settings.feeds.keys().cloned().collect();
    let named = if names.is_empty() {
        NamedFeeds::default()
    } else {
        let ids = stores.archive.intern_feeds(&names).await.context("the feeds of [feeds] get no numbers")?;
        settings.named_feeds(&ids).map_err(|problem| anyhow!(problem))?
    };
    let feeds =
        Feeds::new(stores.archive.clone(), stores.inboxes.clone(), settings.backfill).with_jobs(stores.jobs.clone());
    Ok(Arc::new(feeds.with_retention(settings.unread(), Arc::new(clock::now)).with_named(named)))
}

fn worker(feeds: &Arc<Feeds>, stores: &Stores, settings: &Settings) -> Worker {
    Worker::new(FanOut::new(feeds.clone()), stores.jobs.clone(), stores.doorbell.clone(), settings.timeline.settings())
}

fn add_worker(parts: &mut Parts, worker: Worker) {
    let stop = parts.stop();
    parts.add(async move {
        worker.run(stop).await;
        Ok(())
    });
}

fn banner(role: Role, ports: &Ports, settings: &Settings) -> anyhow::Result<String> {
    let places = [
        ("WebSocket", format!("ws://{}/connection/websocket", ports.devices())),
        ("HTTP API", format!("http://{}/v1", ports.backends())),
        ("Data", settings.data.display().to_string()),
        ("Secrets", settings.secrets_dir().display().to_string()),
    ];
    if role != Role::FEEDGATE {
        return Ok(banner::text(role.name, &places, None));
    }
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let here = std::env::current_dir().context("the current directory is not known")?;
    Ok(banner::text(role.name, &places, Some(Tour { data: &settings.data, program: &program, here: &here })))
}

/// Prints the banner. A closed stdout does not stop the server.
fn show(banner: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{banner}").and_then(|()| stdout.flush());
}
