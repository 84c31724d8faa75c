//! The span of a request that may write, and what the writes of that request need to know of the span.
//!
//! Reads have no span: a trace is for the way of a change. Requests on a port for readers have none either, and the
//! span of a caller who is refused is dropped: nobody without a key makes spans. The header `traceparent` counts only
//! if it is given once and is well-formed.

use axum::extract::Request;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use feedgate_common::archive::{Refused, Write, Written};
use feedgate_common::trace::{self, At, Value};
use feedgate_common::{ItemId, Op};

use crate::net::header::{REQUEST_ID, only};
use crate::net::surface::Surface;

/// The header of W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

tokio::task_local! {
    /// The span of the request that this task answers.
    static CURRENT: At;
}

/// Gives the span of the request that this task answers, if it is traced.
#[inline]
pub(super) fn current() -> Option<At> {
    if trace::is_on() { CURRENT.try_with(|at| *at).ok() } else { None }
}

/// Answers a request, within a span if it is traced.
pub(super) async fn around(route: &'static str, request: Request, next: Next) -> Response {
    let Some(asked) = begin(route, &request) else { return next.run(request).await };
    let method = request.method().to_string();
    let answer = CURRENT.scope(asked.at(), next.run(request)).await;
    let status = answer.status();
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
        asked.forget();
        return answer;
    }
    let attributes = [
        ("http.request.method", Value::Text(method)),
        ("http.route", Value::Text(route.to_owned())),
        ("http.response.status_code", Value::Number(status.as_u16().into())),
    ];
    asked.answered(attributes, status.is_server_error());
    answer
}

fn begin(route: &str, request: &Request) -> Option<trace::Request> {
    if !trace::is_on() || [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method()) {
        return None;
    }
    if !route.starts_with("/v1/") || request.extensions().get() == Some(&Surface::Readers) {
        return None;
    }
    // The port has put the id there; a call that came by NATS has no id.
    let text = |name: HeaderName| only(request.headers(), name)?.to_str().ok();
    trace::Request::begin(text(TRACEPARENT), text(REQUEST_ID))
}

/// The change that each of these writes may make to an item, in the order of the writes; `None` for a write that makes
/// none.
pub(super) fn changes(writes: &[Write]) -> Vec<Option<(ItemId, Op)>> {
    let change = |write: &Write| match write {
        Write::Edit { item, .. } => Some((*item, Op::Update)),
        Write::Delete { item, .. } => Some((*item, Op::Delete)),
        _ => None,
    };
    writes.iter().map(change).collect()
}

/// The changes that were made; `changes` must come from [`changes`] for the same writes.
pub(super) fn made(changes: Vec<Option<(ItemId, Op)>>, written: &[Result<Written, Refused>]) -> Vec<(ItemId, Op)> {
    let made = |(change, written): (Option<(ItemId, Op)>, &Result<Written, Refused>)| match written {
        Ok(Written::Published { id, fresh: true, .. }) => Some((*id, Op::Add)),
        Ok(Written::Edited { .. } | Written::Deleted { fresh: true, .. }) => change,
        _ => None,
    };
    changes.into_iter().zip(written).filter_map(made).collect()
}
