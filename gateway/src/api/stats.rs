//! Counts for operators.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::Api;
use super::access::Backend;
use super::problem::Problem;
use super::query::NoQuery;

/// `GET /v1/stats`: the sessions are exact; what the stores count may lag.
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

/// Of this node.
#[derive(Serialize)]
struct Online {
    users: usize,
    devices: usize,
    /// Connections that have said who they are.
    sessions: usize,
    /// Sockets, with those that have not yet.
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

/// `GET /v1/stats`
pub(super) async fn read(_: Backend, State(api): State<Arc<Api>>, _: NoQuery) -> Result<Json<Stats>, Problem> {
    let node = &api.gateway.node;
    let archive = api.archive().counts().await?;
    let inboxes = api.feeds().inboxes().counts().await?;
    let pending = node.jobs.pending().await?;
    let online = node.pool.counts();
    Ok(Json(Stats {
        version: env!("CARGO_PKG_VERSION"),
        node: node.name.clone(),
        uptime_ms: u64::try_from(api.started.elapsed().as_millis()).unwrap_or(u64::MAX),
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
