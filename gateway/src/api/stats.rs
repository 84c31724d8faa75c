//! The counts that operators see.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use feedgate_common::feed::Feeds;
use feedgate_common::{Archive, Jobs};
use serde::Serialize;

use super::access::ReadKey;
use super::problem::Problem;
use super::query::NoQuery;
use crate::node::LocalSessions;
use crate::node::uptime::Uptime;

/// The answer to `GET /v1/stats`. The counts of this node are exact; the counts of the stores may be a little old.
#[derive(Serialize)]
pub(super) struct Stats {
    version: &'static str,
    node: String,
    uptime_ms: u64,
    sessions: Online,
    archive: Truth,
    inboxes: Logs,
    jobs: Work,
}

/// The users, devices and connections of this node.
#[derive(Serialize)]
struct Online {
    users: usize,
    devices: usize,
    /// Connections that are authenticated.
    sessions: usize,
    /// Sockets, also those that are not yet authenticated.
    connections: usize,
}

#[derive(Serialize)]
struct Truth {
    users: u64,
    items: u64,
    edges: u64,
    events_outstanding: u64,
}

#[derive(Serialize)]
struct Logs {
    inboxes: u64,
    entries: u64,
}

#[derive(Serialize)]
struct Work {
    pending: u64,
}

/// Answers `GET /v1/stats` with counts of this node and of the stores.
pub(super) async fn read(
    _: ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    State(jobs): State<Arc<dyn Jobs>>,
    State(local): State<Arc<LocalSessions>>,
    State(uptime): State<Uptime>,
    _: NoQuery,
) -> Result<Json<Stats>, Problem> {
    let archive = archive.counts().await?;
    let inboxes = feeds.inboxes().counts().await?;
    let pending = jobs.pending().await?;
    let online = local.pool.counts();
    Ok(Json(Stats {
        version: env!("CARGO_PKG_VERSION"),
        node: local.node.clone(),
        uptime_ms: uptime.elapsed_ms(),
        sessions: Online {
            users: online.users,
            devices: online.devices,
            sessions: online.sessions,
            connections: online.connections,
        },
        archive: Truth {
            users: archive.users,
            items: archive.items,
            edges: archive.edges,
            events_outstanding: archive.events,
        },
        inboxes: Logs { inboxes: inboxes.inboxes, entries: inboxes.entries },
        jobs: Work { pending },
    }))
}
