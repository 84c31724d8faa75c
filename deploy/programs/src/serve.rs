//! Runs a process that serves: the stores, and over them a gateway, a timeline worker, or both.
//!
//! ```text
//!                                   ┌▶ gateway on `listen`, `admin_listen` ┐
//!   bind ports ▶ secrets ▶ stores ──┤                                      ├▶ announce ▶ until a signal: `life`
//!                                   └▶ worker; alone: `health_listen`      ┘
//! ```
//!
//! Invariants: nothing is served before everything is open, and no two processes share a data directory.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::metrics::Registry;
use feedgate_common::named::NamedFeeds;
use feedgate_gateway::{Gateway, Surface, clock};
use feedgate_timeline::{FanOut, Noter, Pulse, Relay, Sender, Worker};

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::banner::{self, Tour};
use crate::data::{self, Announced};
use crate::descriptors;
use crate::handover::{Asked, LAST_CALL, Successor};
use crate::health::Health;
use crate::inherited::Inherited;
use crate::jwks;
use crate::kind::Kind;
use crate::life::{Ended, LAST_WAIT, Parts, Signals};
use crate::log;
use crate::passed::{Began, Held};
use crate::ports::{self, Ports};
use crate::reload::{Current, Given, Reload, Source, Users};
use crate::secrets::{self, Secrets};
use crate::settings::Settings;
use crate::stores::Stores;
use crate::tls;
use crate::webhook::{Key, Webhook};

/// What a process does, given by its program.
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

/// Serves until a signal, with the settings that `source` reads, now and at each reload. `accept_loss` is passed to
/// [`Stores::open_embedded`]. Fails if the process could not start, or could not go on. At a hand-over the process then
/// runs another program.
pub(crate) fn run(role: Role, source: Source, accept_loss: bool) -> anyhow::Result<()> {
    let inherited = Inherited::take()?;
    let settings = source()?;
    let filter = log::begin(&settings.log, settings.log_format)?;
    let given = Given { current: Current::new(settings.clone()), source, filter };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let successor = Successor::of(role == Role::FEEDGATE);
    let served = runtime.block_on(serve(role, settings, given, inherited, &successor, accept_loss));
    // Threads that still run end when the other program replaces this one.
    if let Ok(Some(leaving)) = &served {
        return Err(successor.execute(&leaving.held, leaving.began));
    }
    runtime.shutdown_timeout(LAST_WAIT);
    served.map(drop)
}

/// What is kept until another program is executed.
struct Leaving {
    held: Vec<Held>,
    began: Began,
    /// So clients find the ports at the same place meanwhile.
    _announced: Option<Announced>,
}

/// Serves until the process is to end. At a hand-over, gives what the next program takes over.
async fn serve(
    role: Role,
    settings: Settings,
    given: Given,
    inherited: Inherited,
    successor: &Successor,
    accept_loss: bool,
) -> anyhow::Result<Option<Leaving>> {
    let mut signals = Signals::new()?;
    let mut asked = Asked::new()?;
    let handed_over = inherited.handed_over;
    // A SIGHUP that comes during the start is carried out after the start.
    let hang_up = signal(SignalKind::hangup())?;
    let started = tokio::select! {
        started = start(role, settings, given, hang_up, inherited, accept_loss) => started?,
        () = signals.next() => return Ok(None),
    };
    if let Some(began) = handed_over {
        began.tell();
    }
    show(&started.banner);
    let Started { parts, stores, announced, gateway, held, .. } = started;
    let leaves = async {
        asked.next(successor).await;
        if let Some(gateway) = gateway {
            gateway.last_call();
            sleep(LAST_CALL).await;
        }
    };
    let ended = parts.run_until(role.name, signals, leaves, held, stores.close()).await?;
    Ok(match ended {
        Ended::Stopped => None,
        Ended::HandsOver { held, began } => Some(Leaving { held, began, _announced: announced }),
    })
}

/// A process whose parts run.
struct Started {
    parts: Parts,
    stores: Stores,
    announced: Option<Announced>,
    gateway: Option<Gateway>,
    held: Vec<Held>,
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

async fn start(
    role: Role,
    mut settings: Settings,
    given: Given,
    hang_up: Signal,
    inherited: Inherited,
    accept_loss: bool,
) -> anyhow::Result<Started> {
    let kind = settings.kind().map_err(|problems| anyhow!(problems.join("\n")))?;
    #[cfg(feature = "otlp")]
    let traces = crate::otlp::begin(role.name, &settings)?;
    let descriptors = descriptors::raise();
    if !role.gateway {
        #[cfg_attr(not(feature = "otlp"), expect(unused_mut, reason = "a part more with traces"))]
        let mut started = start_worker(role, &settings, given, hang_up, inherited).await?;
        #[cfg(feature = "otlp")]
        crate::otlp::add(&mut started.parts, traces);
        return Ok(started);
    }
    let ports = Ports::bind(&settings, inherited)?;
    let tls_files = settings.tls.files().map(tls::Files::open).transpose()?;
    let admin_tls_files = settings.admin_tls.files().map(tls::Files::open).transpose()?;
    let gateway_settings = descriptors::fit(descriptors, ports.listeners.len(), settings.gateway.clone())?;
    settings.data = data::make(&settings.data)?;
    let secrets_dir = settings.secrets_dir();
    let Opened { mut stores, lock, secrets } = open_with_secrets(kind, &settings, accept_loss).await?;
    let announced = data::announce(&settings.data, &backends(&ports, &settings), lock)?;
    let mut parts = Parts::default();
    #[cfg(feature = "otlp")]
    crate::otlp::add(&mut parts, traces);
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
    let (mut registry, mut webhook) = (std::mem::take(&mut stores.registry), None);
    if role.worker {
        let keys = match kind {
            Kind::Embedded => secrets::webhook_keys_or_make,
            Kind::Cluster => secrets::webhook_keys,
        };
        webhook = self::webhook(&settings, || keys(&secrets_dir))?;
        add_worker(&mut parts, &feeds, &stores, &settings, webhook.clone(), &mut registry);
    }
    // In one process a read of the log costs no more than a read of what the doorbell told.
    let inline_changes = settings.gateway.inline_changes && stores.embedded.is_none();
    let gateway_settings = feedgate_gateway::Settings { inline_changes, ..gateway_settings };
    let current = given.current.clone();
    let gateway = Gateway::new(feedgate_gateway::Parts {
        feeds: feeds.clone(),
        publisher: Arc::new(Publisher::new(stores.archive.clone(), stores.jobs.clone())),
        sessions: stores.sessions.clone(),
        doorbell: stores.doorbell.clone(),
        jobs: stores.jobs.clone(),
        keys: secrets.keys(&secrets_dir, &gateway_settings)?,
        settings: gateway_settings.clone(),
        shown: Arc::new(move || current.shown()),
        node: stores.node.clone(),
        registry,
    });
    if let Some(url) = settings.gateway.jwks().map_err(|problem| anyhow!(problem))? {
        parts.add(jwks::keep(gateway.verifier(), jwks::Source::new(url).context("gateway.jwks_url")?, parts.stop()));
    }
    #[cfg(feature = "cluster")]
    crate::cluster::add_intake(&mut parts, &stores, &settings, &gateway).await?;
    let users = Users { secrets: secrets_dir, feeds, gateway: Some((gateway.clone(), gateway_settings)), webhook };
    parts.add(Reload::new(given, users)?.at_each(hang_up, parts.stop()));
    let banner = banner(role, &ports, &settings, &gateway)?;
    listen(&mut parts, &gateway, ports.listeners, [tls_files, admin_tls_files]);
    Ok(Started { parts, stores, announced: Some(announced), gateway: Some(gateway), held: ports.held, banner })
}

/// The stores of a gateway, and what it knows of secrets.
struct Opened {
    stores: Stores,
    /// Held by the gateway of a cluster on its data directory; embedded stores lock it themselves.
    lock: Option<File>,
    secrets: Secrets,
}

/// Opens the stores and the secrets of a gateway. A cluster has secrets of its own, and fails without them before it
/// asks a store. One process makes its secrets at its first start; a store that has users has had secrets, so their
/// loss is an error.
async fn open_with_secrets(kind: Kind, settings: &Settings, accept_loss: bool) -> anyhow::Result<Opened> {
    let dir = settings.secrets_dir();
    if kind == Kind::Cluster {
        let (lock, secrets) = (data::lock(&settings.data)?, secrets::open(&dir)?);
        ensure!(
            !accept_loss,
            "--accept-loss is for what this process keeps in its own files; over shared stores there is nothing to \
             accept"
        );
        return Ok(Opened { stores: open(settings, false).await?, lock: Some(lock), secrets });
    }
    let stores = open(settings, accept_loss).await?;
    let is_used = !accept_loss && stores.archive.counts().await?.users > 0;
    let secrets = if is_used { secrets::open_used(&dir) } else { secrets::open_or_make(&dir) }?;
    Ok(Opened { stores, lock: None, secrets })
}

/// Serves the gateway on its ports, with the certificates of readers and of admins as far as there are any.
fn listen(
    parts: &mut Parts,
    gateway: &Gateway,
    listeners: Vec<(TcpListener, Surface)>,
    files: [Option<tls::Files>; 2],
) {
    let [readers, admins] = files.each_ref().map(|files| files.as_ref().map(tls::Files::tls));
    for files in files.into_iter().flatten() {
        parts.add(files.keep(parts.stop()));
    }
    for (listener, surface) in listeners {
        // A port with TLS never serves both: see `Settings::splits`.
        let tls = match surface {
            Surface::Readers => readers.clone(),
            Surface::All => admins.clone(),
        };
        let serving = feedgate_gateway::serve(gateway.clone(), listener, surface, tls, parts.stop().cancelled_owned());
        parts.add(async move { serving.await.context("the gateway") });
    }
}

/// Starts a worker alone. A worker keeps nothing, and needs a port only for its health.
async fn start_worker(
    role: Role,
    settings: &Settings,
    given: Given,
    hang_up: Signal,
    inherited: Inherited,
) -> anyhow::Result<Started> {
    let (setting, address) = ("health_listen", settings.health_listen);
    let listener = ports::open(&[(setting, address)], inherited)?.remove(0);
    let held = vec![Held::of(setting, &listener)?];
    let mut stores = open(settings, false).await?;
    let banner = banner::text(role.name, &[("Health", format!("http://{}/readyz", listener.local_addr()?))], None);
    let webhook = webhook(settings, || secrets::webhook_keys(&settings.secrets_dir()))?;
    let mut parts = Parts::default();
    let (feeds, mut registry) = (feeds(&stores, settings).await?, std::mem::take(&mut stores.registry));
    let pulse = add_worker(&mut parts, &feeds, &stores, settings, webhook.clone(), &mut registry);
    let health = Health::new(&stores, pulse, settings.silence_max(), registry);
    parts.add(health.serve(listener, parts.stop()));
    let users = Users { secrets: settings.secrets_dir(), feeds, gateway: None, webhook };
    parts.add(Reload::new(given, users)?.at_each(hang_up, parts.stop()));
    Ok(Started { parts, stores, announced: None, gateway: None, held, banner })
}

/// The feeds. The Archive gives the named feeds their numbers, the same to every node, and notifies users by items that
/// go to these feeds.
async fn feeds(stores: &Stores, settings: &Settings) -> anyhow::Result<Arc<Feeds>> {
    let named = settings.interned_feeds(&*stores.archive, &NamedFeeds::default()).await?;
    let search = settings.search.text().map_err(|problem| anyhow!(problem))?;
    let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), settings.backfill.newest())
        .with_jobs(stores.jobs.clone())
        .with_retention(settings.unread(), Arc::new(clock::now))
        .with_named(named)
        .with_search(search)
        .with_own_posts(settings.own_posts)
        .with_visible(settings.comments.visible);
    settings.notify.hold(&feeds);
    Ok(Arc::new(feeds))
}

/// The webhook of the settings, if there is one; `keys` gives the keys that sign its calls.
fn webhook(
    settings: &Settings,
    keys: impl FnOnce() -> anyhow::Result<Vec<Key>>,
) -> anyhow::Result<Option<Arc<Webhook>>> {
    let push = &settings.push;
    let Some(url) = push.webhook().map_err(|problem| anyhow!(problem))? else { return Ok(None) };
    let sending = push.settings();
    let webhook = Webhook::new(url, keys()?, push.reach(), sending.timeout, sending.calls_at_once);
    webhook.context("push.webhook_url").map(|webhook| Some(Arc::new(webhook)))
}

/// Adds a worker to the parts, and if there is a webhook, the sender that calls it. The numbers of the worker go to
/// `registry`.
fn add_worker(
    parts: &mut Parts,
    feeds: &Arc<Feeds>,
    stores: &Stores,
    settings: &Settings,
    webhook: Option<Arc<Webhook>>,
    registry: &mut Registry,
) -> Arc<Pulse> {
    let mut fan_out = FanOut::new(feeds.clone());
    if let Some(webhook) = webhook {
        let sending = settings.push.settings();
        fan_out = fan_out.with_noter(Noter::new(stores.archive.clone(), stores.sessions.clone(), sending.debounce));
        let sender = Sender::new(feeds.clone(), stores.sessions.clone(), webhook, sending);
        let stop = parts.stop();
        parts.add(async move {
            sender.run(stop).await;
            Ok(())
        });
    }
    if let Some(outlet) = stores.outlet.clone() {
        let (relay, stop) = (Relay::new(stores.archive.clone(), outlet, &stores.node), parts.stop());
        parts.add(async move {
            relay.run(stop).await;
            Ok(())
        });
    }
    let worker = Worker::new(fan_out, stores.jobs.clone(), stores.doorbell.clone(), settings.timeline.clone());
    worker.register(registry);
    let (pulse, stop) = (worker.pulse(), parts.stop());
    parts.add(async move {
        worker.run(stop).await;
        Ok(())
    });
    pulse
}

fn banner(role: Role, ports: &Ports, settings: &Settings, gateway: &Gateway) -> anyhow::Result<String> {
    let scheme = if settings.tls.is_on() { "wss" } else { "ws" };
    let places = [
        ("Console", console(&backends(ports, settings), gateway)?),
        ("WebSocket", format!("{scheme}://{}/connection/websocket", ports.devices())),
        ("HTTP API", format!("{}/v1", backends(ports, settings))),
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

/// The URL where the API key is accepted.
fn backends(ports: &Ports, settings: &Settings) -> String {
    let scheme = if settings.admin_tls.is_on() { "https" } else { "http" };
    format!("{scheme}://{}", ports.backends())
}

/// The address of the console. On a terminal it is a link that opens the console; elsewhere stdout may be a log, which
/// must hold no ticket.
fn console(backends: &str, gateway: &Gateway) -> anyhow::Result<String> {
    let page = format!("{backends}/");
    if !std::io::stdout().is_terminal() {
        return Ok(format!("{page} (for a link that opens it: feedgate console)"));
    }
    Ok(format!("{page}#ticket={}", gateway.console_ticket()?))
}

/// Prints the banner. A closed stdout does not stop the server.
fn show(banner: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{banner}").and_then(|()| stdout.flush());
}
