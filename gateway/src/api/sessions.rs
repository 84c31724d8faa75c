//! Who is connected as a user, and how to end a connection.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use feedgate_common::{DeviceId, Millis, Position, UserId};
use serde::Serialize;

use super::Api;
use super::access::{Backend, Caller};
use super::problem::{Kind, Problem};
use super::query::{NoQuery, Segment, Segments};

/// A user's sessions, by device.
#[derive(Serialize)]
pub(super) struct Sessions {
    sessions: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    device: DeviceId,
    node: String,
    /// What the device has acknowledged, if anything.
    position: Option<Position>,
    since: Millis,
}

/// `GET /v1/users/{user}/sessions`
pub(super) async fn list(
    caller: Caller,
    State(api): State<Arc<Api>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<Json<Sessions>, Problem> {
    caller.may_read(&user)?;
    let found = match api.user_no(&user).await? {
        Some(user) => api.gateway.parts.sessions.list(user).await?,
        None => vec![],
    };
    let line = |s: feedgate_common::sessions::SessionInfo| Line {
        device: s.device,
        node: s.node,
        position: s.position,
        since: s.since,
    };
    Ok(Json(Sessions { sessions: found.into_iter().map(line).collect() }))
}

/// `DELETE /v1/users/{user}/sessions/{device}`: closes the device's connection with 3503, after which
/// its SDK does not come back by itself.
pub(super) async fn kick(
    _: Backend,
    State(api): State<Arc<Api>>,
    Segments(user, device): Segments<UserId, DeviceId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let closed = match api.user_no(&user).await? {
        Some(user) => api.gateway.pool.kick(user, &device),
        None => 0,
    };
    if closed > 0 {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(Kind::NotFound, format!("user {user} has no session of device {device} now")))
}
