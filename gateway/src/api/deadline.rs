//! Answers every request in time, even if a store hangs.
//!
//! ```text
//!   head ──▶ body, within BODY_TIMEOUT ──▶ answer, within 10 s, else 503
//! ```
//!
//! A request whose time is over is dropped: a write of it may or may not have happened, as with any other 503 that is
//! `unavailable`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::problem::{Kind, Problem};

/// The most time for an answer, from when the request has arrived completely.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long after its head a body must have arrived.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A signal from the code that reads a request's body: the body has arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole(Arc<Notify>);

impl Whole {
    /// Says that the body has arrived, or will not be waited for any longer.
    pub(super) fn tell(&self) {
        self.0.notify_one();
    }
}

/// The middleware around every route: answers 503 when the time is over.
pub(super) async fn in_time(mut request: Request, next: Next) -> Response {
    let (whole, has_body) = (Whole::default(), !request.body().is_end_stream());
    request.extensions_mut().insert(whole.clone());
    let too_long = async {
        if has_body {
            // Reading a body has a limit of time of its own; a route without a body never reads it.
            let _ = timeout(BODY_TIMEOUT, whole.0.notified()).await;
        }
        sleep(TIMEOUT).await;
    };
    tokio::select! {
        response = next.run(request) => response,
        () = too_long => {
            let detail = format!("a store did not answer within {} s; retry, with the same idempotency key if you write", TIMEOUT.as_secs());
            Problem::new(Kind::Unavailable, detail).into_response()
        }
    }
}
