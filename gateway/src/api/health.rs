//! Two questions of whoever runs the process: is it alive, and should it get requests? Both are answered from memory.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::Api;
use super::problem::{Kind, Problem};
use super::query::NoQuery;

/// The answer to both.
#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
}

/// `GET /healthz`: the process makes progress. A broken store is no reason to restart it.
pub(super) async fn alive(State(api): State<Arc<Api>>, _: NoQuery) -> Result<Json<Health>, Problem> {
    if api.gateway.node.vitals.stuck(api.gateway.node.elapsed_ms()) {
        return Err(Problem::new(Kind::Unavailable, "nothing has gone on here for a minute; restart this process"));
    }
    Ok(Json(Health { status: "alive" }))
}

/// `GET /readyz`: every store answers, this node's sessions count, and it is not going away.
pub(super) async fn ready(State(api): State<Arc<Api>>, _: NoQuery) -> Result<Json<Health>, Problem> {
    let why = if api.gateway.stopping.is_cancelled() {
        "this node is going away".to_owned()
    } else if let Some(away) = api.gateway.node.vitals.away() {
        away
    } else if !api.gateway.node.may_push() {
        "this node's lease in the session pool has lapsed; its sessions wait until it is renewed".to_owned()
    } else {
        return Ok(Json(Health { status: "ready" }));
    };
    Err(Problem::new(Kind::Unavailable, why))
}
