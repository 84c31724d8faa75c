//! `GET /v1/backup`: all that a server in one process has stored, as of now, for `feedgate restore`.
//!
//! Invariants: writes go on meanwhile. The server holds one piece, and reads the next piece when the client has taken
//! it. A body that was cut off by an error or a drain has no end mark.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use feedgate_common::Archive;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::AdminKey;
use super::problem::{Kind, Problem};
use super::query::NoQuery;

/// The media type of rows that only the same program reads.
const HEADERS: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "application/octet-stream"), (header::CACHE_CONTROL, "no-store")];

/// The place of the only backup at a time: each backup keeps old versions of rows on the disk. All clones share this
/// place.
#[derive(Clone)]
pub(crate) struct Copying(Arc<Semaphore>);

impl Copying {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// Answers `GET /v1/backup` with the rows of all stores.
pub(super) async fn copy(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(copying): State<Copying>,
    State(stopping): State<CancellationToken>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let place = copying.0.try_acquire_owned();
    let place = place.map_err(|_| Problem::new(Kind::Overloaded, "another backup is being made: wait for its end"))?;
    let elsewhere = "this server keeps its items in PostgreSQL: back it up with pg_basebackup and archived WAL, or with \
                     pg_dump, and copy the directory of the secrets; inboxes and queues are made again from it";
    let pieces = archive.copy().ok_or_else(|| Problem::new(Kind::NotFound, elsewhere))?;
    let pieces = pieces.take_until(stopping.cancelled_owned()).map(move |piece| {
        // The place is given back when the body is dropped, at its end or earlier.
        let _ = &place;
        piece.map_err(|error| {
            tracing::warn!(%error, "a backup was broken off");
            io::Error::other(error)
        })
    });
    Ok((HEADERS, Body::from_stream(pieces)).into_response())
}
