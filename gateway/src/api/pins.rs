//! Pins: items that a user shows before all other items on the profile. A change is durable when it is answered.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use feedgate_common::pins::NotPinned;
use feedgate_common::{Archive, UserId};

use super::access::PublishKey;
use super::names::user_no;
use super::problem::{Kind, Problem};
use super::query::{ItemRef, NoQuery, Segments};
use super::seeing::{missing, resolve};

/// Answers `PUT /v1/users/{user}/pins/{id}`. If the item is pinned already, nothing changes, not even the order.
pub(super) async fn pin(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    Segments(user, which): Segments<UserId, ItemRef>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let item = resolve(&*archive, &which).await?;
    // A user who was never named has published nothing.
    let Some(no) = user_no(&*archive, &user).await? else { return Err(refused(NotPinned::OfAnother, &user, &which)) };
    archive.pin(no, item).await?.map_err(|why| refused(why, &user, &which))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers `DELETE /v1/users/{user}/pins/{id}`. It succeeds without a change if the item is not pinned.
pub(super) async fn unpin(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    Segments(user, which): Segments<UserId, ItemRef>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let item = resolve(&*archive, &which).await?;
    if let Some(no) = user_no(&*archive, &user).await? {
        archive.unpin(no, item).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

fn refused(why: NotPinned, user: &UserId, which: &ItemRef) -> Problem {
    let detail = format!("user {user} cannot pin item {which}: {why}");
    match why {
        NotPinned::NoSuchItem => missing(which),
        NotPinned::OfAnother | NotPinned::Direct => Problem::parameter("id", detail),
        NotPinned::TooMany => Problem::new(Kind::Conflict, detail),
    }
}
