//! The erasure of a user: accepted at once, carried out by the workers, and its receipt.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use feedgate_common::erase::{Erasure, Removed};
use feedgate_common::{Archive, Millis, UserId};
use serde::Serialize;
use tokio::time::sleep;

use super::access::AdminKey;
use super::names::user_no;
use super::problem::{Kind, Problem};
use super::query::{NoQuery, Segment, decimal};
use crate::clock;
use crate::node::LocalSessions;
use crate::node::revocations::Revocations;

/// What became of an erasure so far.
#[derive(Serialize)]
pub(super) struct Receipt {
    id: String,
    user: UserId,
    accepted_at: Millis,
    /// When all of it was removed; null until then.
    finished_at: Option<Millis>,
    removed: Removed,
}

/// The number of an erasure in a path.
pub(super) struct ErasureId(u64);

impl FromStr for ErasureId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decimal(text).map(Self).ok_or("the id of a receipt is a number, as the answer to the erasure has it")
    }
}

/// Answers `POST /v1/users/{user}/erase`: accepts that all that is known of the user is removed, refuses the tokens
/// that were issued before now, and ends the sessions that have shown such tokens. The order is durable before the
/// answer; workers carry it out. If an erasure of the user is already under way, the answer is its receipt.
pub(super) async fn erase(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(local): State<Arc<LocalSessions>>,
    State(revocations): State<Arc<Revocations>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<(StatusCode, Json<Receipt>), Problem> {
    let nothing = || Problem::new(Kind::NotFound, format!("nothing is known of user {user}"));
    let number = user_no(&*archive, &user).await?.ok_or_else(nothing)?;
    let erasure = archive.begin_erasure(number, clock::now()).await?;
    // A token that is issued after the answer must be valid, so the answer waits until the millisecond of this call is
    // over.
    sleep(Duration::from_millis(1)).await;
    revocations.follow(&local.pool).await?;
    local.doorbell.confirm(&[number]).await;
    Ok((StatusCode::ACCEPTED, Json(receipt(erasure, user))))
}

/// Answers `GET /v1/erasures/{id}` with the receipt of an erasure.
pub(super) async fn read(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    Segment(ErasureId(id)): Segment<ErasureId>,
    _: NoQuery,
) -> Result<Json<Receipt>, Problem> {
    let nothing = || Problem::new(Kind::NotFound, format!("there is no erasure {id}"));
    let erasure = archive.erasure(id).await?.ok_or_else(nothing)?;
    let user = archive.user_ids(&[erasure.user]).await?.remove(0);
    Ok(Json(receipt(erasure, user)))
}

fn receipt(Erasure { id, accepted_at, state, .. }: Erasure, user: UserId) -> Receipt {
    Receipt { id: id.to_string(), user, accepted_at, finished_at: state.finished_at, removed: state.removed }
}
