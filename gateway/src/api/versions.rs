//! The bodies that an item had before it was edited. Moderators look at them by a backend; no reader gets them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::{Archive, BODIES_KEPT, Body, ItemId, Millis, Replaced};
use serde::Serialize;

use super::access::ReadKey;
use super::problem::Problem;
use super::query::{ItemRef, NoQuery, Segment};
use super::seeing::Seen;
use crate::limits::budget::{ITEM_MAX, most};

/// A body that was replaced.
#[derive(Serialize)]
struct Version {
    version: u32,
    body: Body,
    replaced_at: Millis,
}

/// All versions of an item that are kept, the newest first, without the present version.
#[derive(Serialize)]
struct Versions {
    id: ItemId,
    versions: Vec<Version>,
}

/// Answers `GET /v1/items/{id}/versions` with the earlier bodies of an item.
pub(super) async fn list(
    ReadKey(caller): ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    Segment(which): Segment<ItemRef>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let permit = caller.permit(most(BODIES_KEPT, BODIES_KEPT * ITEM_MAX)).await?;
    let id = Seen::by(&archive, None, false).await?.resolve(&which).await?;
    let version = |Replaced { version, body, at }| Version { version, body, replaced_at: at };
    let versions = archive.versions(id).await?.into_iter().map(version).collect();
    Ok(permit.answer(&Versions { id, versions }))
}
