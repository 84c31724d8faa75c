//! How the console gets access: a link contains a ticket, and the ticket opens a session.
//!
//! ```text
//!   POST /v1/console/ticket    with the API key              ──▶ a ticket, for a link
//!   POST /v1/console/session   with a ticket as the bearer   ──▶ a key, which the page then shows in every request
//! ```

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};
use feedgate_common::Millis;
use serde::Serialize;

use super::access::{Access, AdminKey, Entering};
use super::problem::{Kind, Problem};
use super::query::NoQuery;
use crate::auth::console::{Opened, TICKET_TTL};
use crate::clock;

/// Says that no cache may keep an answer.
const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// A ticket that was just made.
#[derive(Serialize)]
pub(super) struct Ticket {
    ticket: String,
    /// Until when the ticket can be used, in Unix milliseconds.
    expires_at: Millis,
}

/// A session that was just opened.
#[derive(Serialize)]
pub(super) struct Session {
    key: String,
    /// When the session ends, in Unix milliseconds.
    expires_at: Millis,
}

/// Answers `POST /v1/console/ticket` with a ticket that nobody has used.
pub(super) async fn ticket(
    _: AdminKey,
    State(access): State<Arc<Access>>,
    _: NoQuery,
) -> Result<([(HeaderName, &'static str); 1], Json<Ticket>), Problem> {
    let expires_at = clock::now() + TICKET_TTL.as_millis() as Millis;
    let ticket = access.console.ticket().map_err(no_random_bytes)?;
    Ok((NO_STORE, Json(Ticket { ticket, expires_at })))
}

/// Answers `POST /v1/console/session`, and uses the ticket up.
pub(super) async fn session(
    entering: Entering,
    State(access): State<Arc<Access>>,
    _: NoQuery,
) -> Result<([(HeaderName, &'static str); 1], Json<Session>), Problem> {
    entering.use_up(&access)?;
    let Opened { key, expires_at } = access.console.open().map_err(no_random_bytes)?;
    Ok((NO_STORE, Json(Session { key, expires_at })))
}

fn no_random_bytes(error: getrandom::Error) -> Problem {
    tracing::error!(%error, "the system gives no random bytes");
    Problem::new(Kind::Internal, "the system gives no random bytes; the log of the server says more")
}
