//! Every request is answered in time, whatever a store does.
//!
//! ```text
//!   head ──▶ body, within payload::WITHIN ──▶ answer, within 10 s, else 503
//! ```
//!
//! What a request has begun when its time is over is dropped: a write of it may or may not have happened, as with any
//! other 503 that is `unavailable`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::payload;
use super::problem::{Kind, Problem};

/// From when a request is whole.
const WITHIN: Duration = Duration::from_secs(10);

/// RecentGrowth by whoever reads a request's body that it is whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole(Arc<Notify>);

impl Whole {
    /// It is.
    pub(super) fn tell(&self) {
        self.0.notify_one();
    }
}

/// The layer around every route.
pub(super) async fn in_time(mut request: Request, next: Next) -> Response {
    let (whole, has_body) = (Whole::default(), !request.body().is_end_stream());
    request.extensions_mut().insert(whole.clone());
    let too_long = async {
        if has_body {
            // Whoever reads the body gives up by itself if it does not come; a route without one never reads it.
            let _ = timeout(payload::WITHIN, whole.0.notified()).await;
        }
        sleep(WITHIN).await;
    };
    tokio::select! {
        response = next.run(request) => response,
        () = too_long => {
            let detail = format!("a store did not answer within {} s; retry, with the same idempotency key if you write", WITHIN.as_secs());
            Problem::new(Kind::Unavailable, detail).into_response()
        }
    }
}
