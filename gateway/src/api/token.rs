//! Makes tokens for readers, so that a backend needs no JWT library.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};
use feedgate_common::{DeviceId, Millis, UserId};
use serde::Serialize;

use super::access::Backend;
use super::payload::OptionalPayload;
use super::problem::Problem;
use super::query::{NoQuery, Segment};
use crate::auth::verifier::Verifier;
use crate::clock;

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
    _: Backend,
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
    let expires_at = clock::now() / 1000 + ttl;
    let exp = u64::try_from(expires_at).expect("the clock is after 1970");
    let token = verifier.keys.mint(&user, device.as_ref(), exp);
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(Minted { token, expires_at: expires_at * 1000 })))
}
