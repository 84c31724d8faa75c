//! Answers whether the process is alive, and whether it should get requests. Both answers come from memory.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::problem::{Kind, Problem};
use super::query::NoQuery;
use crate::node::lease::Lease;
use crate::node::uptime::Uptime;
use crate::node::vitals::Vitals;

/// The answer to either question, if the answer is yes.
#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
}

/// Answers `GET /healthz`: whether the process makes progress. A broken store is no reason to restart the process.
pub(super) async fn alive(
    State(vitals): State<Arc<Vitals>>,
    State(uptime): State<Uptime>,
    _: NoQuery,
) -> Result<Json<Health>, Problem> {
    if vitals.stuck(uptime.elapsed_ms()) {
        return Err(Problem::new(Kind::Unavailable, "nothing has gone on here for a minute; restart this process"));
    }
    Ok(Json(Health { status: "alive" }))
}

/// Answers `GET /readyz`: whether every store answers, the sessions of this node count, and the node does not shut
/// down.
pub(super) async fn ready(
    State(vitals): State<Arc<Vitals>>,
    State(lease): State<Arc<Lease>>,
    State(stopping): State<CancellationToken>,
    _: NoQuery,
) -> Result<Json<Health>, Problem> {
    let why = if stopping.is_cancelled() {
        "this node is going away".to_owned()
    } else if let Some(away) = vitals.away() {
        away
    } else if !lease.may_push() {
        "this node's lease in the session pool has lapsed; its sessions wait until it is renewed".to_owned()
    } else {
        return Ok(Json(Health { status: "ready" }));
    };
    Err(Problem::new(Kind::Unavailable, why))
}
