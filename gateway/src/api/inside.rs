//! Carries out calls that came as messages, by the routes of this API: each call becomes a request of its own.
//!
//! Invariants: each rule is written only once, in the handlers. No request from outside can look like a request of this
//! module, because an extension marks the latter, not a header.

use std::collections::HashMap;
use std::convert::Infallible;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, Response, header};
use compact_str::{CompactString, format_compact};
use feedgate_common::intake::{Answer, Backend, Call, Wrong};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::value::RawValue;

use super::problem::{Kind, Problem};
use crate::auth::{Role, Roles};

/// Marks a request that this process makes itself, for a backend that may do what `roles` allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside {
    pub(super) roles: Roles,
}

/// The key of a batch: an operation without a key of its own gets the key of the batch together with its number.
#[derive(Debug, Clone)]
pub(super) struct BatchKey(CompactString);

impl BatchKey {
    /// The key of operation number `i`.
    pub(super) fn of(&self, i: usize) -> CompactString {
        format_compact!("{}/{i}", self.0)
    }
}

/// The routes, for calls that come from a bus.
pub(crate) struct Messages(TowerToHyperService<Router>);

impl Messages {
    pub(crate) fn new(router: Router) -> Self {
        Self(TowerToHyperService::new(router))
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let answered = async { answer(self.0.call(request).await).await };
        // A panic is a bug at this one call. The other calls go on, as other requests do.
        let panicked = || refused(&Problem::new(Kind::Internal, "this call made the server fail; its log says more"));
        std::panic::AssertUnwindSafe(answered).catch_unwind().await.unwrap_or_else(|_| panicked())
    }

    /// Whether the item of an edit has the body and the rank that the edit gives it, and the version after the one that
    /// the edit asked for: then the edit was carried out before, and its message came again.
    async fn is_done(&self, edit: &Call) -> bool {
        let asked: Option<u32> = edit.if_match.as_ref().and_then(|version| version.trim_matches('"').parse().ok());
        let Some(next) = asked.and_then(|asked| asked.checked_add(1)) else { return false };
        let found = self.send(request("GET", &edit.path, Body::empty())).await;
        let (is, wanted) = (fields(&found.body), fields(&edit.body));
        let has = |name: &str, wanted: &str| is.get(name).is_some_and(|is| is.get() == wanted);
        let has_what_is_given = |name| wanted.get(name).is_none_or(|wanted| has(name, wanted.get()));
        has("version", &next.to_string()) && has_what_is_given("body") && has_what_is_given("rank")
    }
}

#[async_trait]
impl Backend for Messages {
    async fn carry_out(&self, call: Call) -> Answer {
        let answer = self.send(of(&call)).await;
        if answer.status == 412 && call.verb.method == "PATCH" && self.is_done(&call).await {
            return self.send(request("GET", &call.path, Body::empty())).await;
        }
        answer
    }

    fn refuse(&self, wrong: Wrong) -> Answer {
        refused(&match wrong {
            Wrong::Subject(detail) => Problem::new(Kind::NoSuchRoute, detail),
            Wrong::Header(name, detail) => Problem::header(name, detail),
        })
    }

    fn overloaded(&self) -> Answer {
        let detail = "this gateway has too many calls under way; nothing of this one was done: retry";
        refused(&Problem::new(Kind::Overloaded, detail))
    }
}

/// The fields of a JSON object, as they came; none if it is no object.
fn fields(json: &[u8]) -> HashMap<String, &RawValue> {
    serde_json::from_slice(json).unwrap_or_default()
}

/// The request that a call stands for.
fn of(call: &Call) -> Request<Body> {
    let body = if call.verb.has_body { Body::from(call.body.clone()) } else { Body::empty() };
    let mut request = request(call.verb.method, &call.path, body);
    let headers = request.headers_mut();
    if let Some(version) = &call.if_match {
        // A value that no header can hold is no version of an item.
        headers.insert(header::IF_MATCH, HeaderValue::from_str(version).unwrap_or(HeaderValue::from_static("")));
    }
    match (&call.key, call.verb.word) {
        (Some(key), "publish" | "comment") => {
            let key = HeaderValue::from_str(key).expect("a key is visible ASCII");
            headers.insert("idempotency-key", key);
        }
        (Some(key), "batch" | "comments") => drop(request.extensions_mut().insert(BatchKey(key.into()))),
        _ => {}
    }
    request
}

fn request(method: &str, path: &str, body: Body) -> Request<Body> {
    let json = HeaderValue::from_static("application/json");
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, json);
    let mut request = request.body(body).expect("the path of a call is percent-encoded");
    let roles = [Role::Read, Role::Publish].into_iter().collect();
    request.extensions_mut().insert(Inside { roles });
    request
}

async fn answer(response: Result<Response<Body>, Infallible>) -> Answer {
    let (head, body) = match response {
        Ok(response) => response.into_parts(),
        Err(never) => match never {},
    };
    let headers = head.headers.iter().map(|(name, value)| line(name, value)).collect();
    let body = body.collect().await.map_or_else(|_| vec![], |whole| whole.to_bytes().to_vec());
    Answer { status: head.status.as_u16(), headers, body }
}

fn refused(problem: &Problem) -> Answer {
    let body = serde_json::to_vec(problem).expect("our own values serialize, and memory takes all");
    let mut headers = vec![line(&header::CONTENT_TYPE, &HeaderValue::from_static("application/problem+json"))];
    headers.extend(problem.header_lines().map(|(name, value)| line(&name, &value)));
    Answer { status: problem.kind.status().as_u16(), headers, body }
}

/// A header line of an answer.
fn line(name: &HeaderName, value: &HeaderValue) -> (String, String) {
    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
}
