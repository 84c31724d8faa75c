//! Two questions of whoever runs the process: is it alive, and should it get requests?

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::Api;
use super::problem::{Kind, Problem};
use super::query::NoQuery;

/// A store that does not answer a small read within this is not available.
const WITHIN: Duration = Duration::from_secs(2);

/// The answer to both.
#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
}

/// `GET /healthz`: the process answers. A broken store is no reason to restart it.
pub(super) async fn alive(_: NoQuery) -> Json<Health> {
    Json(Health { status: "alive" })
}

/// `GET /readyz`: every store answers a small read.
pub(super) async fn ready(State(api): State<Arc<Api>>, _: NoQuery) -> Result<Json<Health>, Problem> {
    let stores = async {
        api.archive().ping().await?;
        api.feeds().inboxes().ping().await?;
        api.gateway.parts.sessions.ping().await?;
        api.gateway.parts.jobs.ping().await
    };
    match tokio::time::timeout(WITHIN, stores).await {
        Ok(answers) => answers.map(|_| Json(Health { status: "ready" })).map_err(Problem::from),
        Err(_) => Err(Problem::new(Kind::Unavailable, format!("a store did not answer within {WITHIN:?}"))),
    }
}
