//! The sessions of a user: a list of them, and how to end one.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use feedgate_common::doorbell::Closing;
use feedgate_common::{Archive, DeviceId, Millis, Position, UserId};
use serde::Serialize;

use super::access::{AdminKey, Caller};
use super::names::user_no;
use super::problem::{Kind, Problem};
use super::query::{NoQuery, Segment, Segments};
use crate::node::LocalSessions;

/// The most bytes that a list takes in memory, enough for hundreds of sessions.
const LIST_BYTES: usize = 256 * 1024;

/// The sessions of a user, one per device.
#[derive(Serialize)]
struct Sessions {
    sessions: Vec<SessionJson>,
}

#[derive(Serialize)]
struct SessionJson {
    device: DeviceId,
    node: String,
    /// The position that the device has acknowledged in the main feed, if any.
    position: Option<Position>,
    since: Millis,
}

/// Answers `GET /v1/users/{user}/sessions` with all sessions of the user.
pub(super) async fn list(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(local): State<Arc<LocalSessions>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let permit = caller.permit(LIST_BYTES).await?;
    let found = match user_no(&*archive, &user).await? {
        Some(user) => local.sessions.list(user).await?,
        None => vec![],
    };
    let line = |s: feedgate_common::sessions::SessionInfo| SessionJson {
        device: s.device,
        node: s.node,
        position: s.position,
        since: s.since,
    };
    Ok(permit.answer(&Sessions { sessions: found.into_iter().map(line).collect() }))
}

/// Answers `DELETE /v1/users/{user}/sessions/{device}`: ends the device's session on whichever node it is. Its
/// connection is closed with 3503, after which its SDK does not reconnect by itself.
pub(super) async fn kick(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(local): State<Arc<LocalSessions>>,
    Segments(user, device): Segments<UserId, DeviceId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let Some(number) = user_no(&*archive, &user).await? else { return Err(no_session(&user, &device)) };
    let revoked = local.sessions.revoke(number, &device).await;
    let revoked = revoked.inspect_err(|_| local.ghosts.note(number))?;
    // This also ends a session that this node holds but the session pool has forgotten.
    let here = local.pool.kick(number, &device);
    match revoked {
        Some((of, connection)) => local.close(&of, number, connection, Closing::Kicked).await,
        None if here == 0 => return Err(no_session(&user, &device)),
        None => {}
    }
    Ok(StatusCode::NO_CONTENT)
}

fn no_session(user: &UserId, device: &DeviceId) -> Problem {
    Problem::new(Kind::NotFound, format!("user {user} has no session of device {device} now"))
}
