//! Makes tokens for readers, so that a backend needs no JWT library, and revokes them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use feedgate_common::{Archive, DeviceId, Millis, UserId};
use serde::Serialize;
use tokio::time::sleep;

use super::access::AdminKey;
use super::payload::OptionalPayload;
use super::problem::Problem;
use super::query::{NoQuery, Segment};
use crate::auth::verifier::Verifier;
use crate::clock;
use crate::node::LocalSessions;
use crate::node::revocations::Revocations;

const TTL_DEFAULT_SECS: i64 = 3600;
const TTL_MAX_SECS: i64 = 30 * 24 * 3600;

/// A token that was just made.
#[derive(Serialize)]
pub(super) struct Minted {
    token: String,
    /// When the token expires, in Unix milliseconds; a whole second.
    expires_at: Millis,
}

/// Answers `POST /v1/users/{user}/token` with `{device_id?, ttl?}`, where `ttl` is in seconds.
pub(super) async fn mint(
    _: AdminKey,
    State(verifier): State<Arc<Verifier>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
    OptionalPayload(payload): OptionalPayload,
) -> Result<([(HeaderName, &'static str); 1], Json<Minted>), Problem> {
    let fields = payload.fields(&["device_id", "ttl"])?;
    let device: Option<DeviceId> = fields.get("device_id").map(|field| field.name()).transpose()?;
    let ttl = match fields.get("ttl") {
        None => TTL_DEFAULT_SECS,
        Some(field) => match field.integer()? {
            ttl @ 1..=TTL_MAX_SECS => ttl,
            ttl => return Err(field.refuse(format_args!("must be 1 to {TTL_MAX_SECS} seconds, not {ttl}"))),
        },
    };
    let now = clock::now();
    let expires_at = now / 1000 + ttl;
    let exp = u64::try_from(expires_at).expect("the clock is after 1970");
    let token = verifier.keys().mint(&user, device.as_ref(), now, exp);
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(Minted { token, expires_at: expires_at * 1000 })))
}

/// Answers `POST /v1/users/{user}/revoke`: refuses the user's tokens that were issued before now, and ends the sessions
/// that have shown such tokens. This is durable, and done on this node, before the answer. Other nodes are told, and
/// also ask the archive every few seconds.
pub(super) async fn revoke(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(local): State<Arc<LocalSessions>>,
    State(revocations): State<Arc<Revocations>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let number = archive.intern(&[user]).await?[0];
    // This refuses tokens of the same millisecond too. A token issued after the answer must be valid, so the answer
    // waits.
    archive.revoke(number, clock::now() + 1).await?;
    sleep(Duration::from_millis(1)).await;
    revocations.follow(&local.pool).await?;
    local.doorbell.confirm(&[number]).await;
    Ok(StatusCode::NO_CONTENT)
}
