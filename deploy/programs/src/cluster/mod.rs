//! Opens the stores that several processes share. The programs in this folder run over these stores alone.
//!
//! ```text
//!   archive_url ─▶ PostgreSQL ─┬─▶ Archive
//!                              └─▶ epochs ─┐
//!   inbox_url ───▶ Redis ──────────────────┴▶ Inboxes, Sessions ─┐
//!   bus_url ─────▶ NATS ─┬─▶ Jobs                                │
//!                        └─▶ Doorbell ◀── which nodes to wake ───┘
//! ```
//!
//! Invariant: a process serves nothing before all three engines have answered it.

mod patience;
pub(crate) mod programs;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use feedgate_common::announce::Outlet;
use feedgate_common::archive::Epochs;
use feedgate_common::metrics;
use feedgate_common::{Archive, Inboxes, trace};
use feedgate_gateway::Gateway;
use feedgate_nats::{Bus, NatsDoorbell, NatsIntake, NatsJobs, share_traces};
use feedgate_postgres::PostgresArchive;
use feedgate_redis::{Link, RedisInboxes, RedisSessions, Spans, Timeouts};

use crate::life::Parts;
use crate::settings::Settings;
use crate::stores::Stores;
use patience::{Engine, Patience};

/// Opens the stores that the settings name, and waits for engines that are not there yet. Cancel safe.
pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Stores> {
    let patience = Patience::new(settings.wait_for_stores_secs);
    let postgres = Engine { name: "PostgreSQL", setting: "archive_url", url: &settings.archive_url };
    let redis = Engine { name: "Redis", setting: "inbox_url", url: &settings.inbox_url };
    let nats = Engine { name: "NATS", setting: "bus_url", url: &settings.bus_url };
    let node = node(&settings.node);
    let tls = settings.stores_tls.files();
    tls.check()?;

    let options =
        feedgate_postgres::Options { buckets: settings.buckets, policy: settings.policy(), ..Default::default() };
    // A migration of large tables takes longer than a start waits for an engine.
    let connect = || {
        let options = feedgate_postgres::Options { reach_within: patience.of_a_try(), ..options };
        PostgresArchive::connect_with(postgres.url.reveal(), &tls, options)
    };
    let archive = patience.until_ready(&postgres, connect).await?;
    // The migration may have taken all the time that a start waits. The other engines get as much again.
    let patience = Patience::new(settings.wait_for_stores_secs);
    // The Archive's number of buckets is fixed when the Archive is made, and the other stores use the same number.
    let buckets = archive.buckets();
    let mut registry = metrics::registry();
    archive.register(&mut registry);
    let archive: Arc<dyn Archive> = Arc::new(archive);
    let epochs: Arc<dyn Epochs> = archive.clone();

    let connect = || Link::connect_with(redis.url.reveal(), &tls, Timeouts::default());
    let link = patience.until_there(&redis, connect).await?;
    link.register(&mut registry);
    let inboxes = || RedisInboxes::open(link.clone(), epochs.clone(), buckets);
    let inboxes = Arc::new(patience.until_there(&redis, inboxes).await?);
    let sessions = Arc::new(RedisSessions::new(link, epochs, buckets, Spans::default()));

    let bus = patience.until_there(&nats, || Bus::connect_with(nats.url.reveal(), &tls)).await?;
    if trace::is_on() {
        share_traces(&bus).await.context("traces")?;
    }
    let jobs = patience.until_there(&nats, || NatsJobs::open(bus.clone(), settings.events.streams())).await?;
    let jobs = Arc::new(jobs);
    let outlet: Option<Arc<dyn Outlet>> = Some(jobs.clone());
    let doorbell = Arc::new(NatsDoorbell::open(bus.clone(), &node, sessions.clone()));
    Ok(Stores { archive, inboxes, sessions, jobs, doorbell, outlet, node, bus: Some(bus), registry, embedded: None })
}

/// Opens the stores that hold items and feeds, and waits for none of them. Makes nothing that is missing: the database
/// must already have the tables of this version.
pub(crate) async fn open_feeds(settings: &Settings) -> anyhow::Result<(Arc<dyn Archive>, Arc<dyn Inboxes>)> {
    let tls = settings.stores_tls.files();
    let options =
        feedgate_postgres::Options { buckets: settings.buckets, policy: settings.policy(), ..Default::default() };
    let archive = PostgresArchive::connect_with(settings.archive_url.reveal(), &tls, options).await?;
    let buckets = archive.buckets();
    let archive = Arc::new(archive);
    let link = Link::connect_with(settings.inbox_url.reveal(), &tls, Timeouts::default()).await;
    let link = link.context("the Redis of inbox_url; --inboxes 0 looks into PostgreSQL alone")?;
    let inboxes = RedisInboxes::open(link, archive.clone(), buckets).await?;
    Ok((archive, Arc::new(inboxes)))
}

/// Takes calls of backends from NATS, as the settings say, until the parts of this process stop.
pub(crate) async fn add_intake(
    parts: &mut Parts,
    stores: &Stores,
    settings: &Settings,
    gateway: &Gateway,
) -> anyhow::Result<()> {
    let Some(bus) = stores.bus.as_ref().filter(|_| settings.intake.open) else { return Ok(()) };
    let intake = NatsIntake::open(bus, settings.intake.settings(), &stores.node, gateway.messages());
    let (intake, stop) = (intake.await.context("the intake (intake.open)")?, parts.stop());
    parts.add(async move {
        intake.run(stop).await;
        Ok(())
    });
    Ok(())
}

/// The name of this node, `<name>.<start>-<pid>`. A process that starts again is another node, so that no message to
/// the old node reaches the new one.
#[expect(clippy::disallowed_methods, reason = "the time of the start is a part of the name")]
fn node(name: &str) -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let name = if name.is_empty() { host.split('.').next().unwrap_or_default() } else { name };
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{name}.{start}-{}", std::process::id())
}
