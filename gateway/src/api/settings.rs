//! `GET /v1/settings`: the settings that are in use now, and for each whether a reload takes another value.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::access::AdminKey;
use super::query::NoQuery;
use crate::settings::Shown;

/// Gives the settings of the process as they are now, sorted by name.
pub(crate) type Telling = Arc<dyn Fn() -> Vec<Shown> + Send + Sync>;

/// The answer: one object, to which more fields can be added.
#[derive(Serialize)]
pub(super) struct Told {
    settings: Vec<Shown>,
}

/// Answers `GET /v1/settings`. No secret is in the answer: secrets are in files of their own, and the URLs of stores
/// are told without any part that may be a password.
pub(super) async fn tell(_: AdminKey, State(telling): State<Telling>, _: NoQuery) -> Json<Told> {
    Json(Told { settings: telling() })
}
