//! Which web pages may read what a reader's token opens: a browser asks for this before a script sees an answer of
//! another origin.
//!
//! ```text
//!   OPTIONS with Origin ──▶ 204: the method, and the headers that a page may send     (the browser's question)
//!   GET, POST, PUT, PATCH, DELETE with Origin ──▶ the answer, and that this origin may see it
//! ```
//!
//! The pages are those of `allowed_origins`, as for WebSockets; or all pages, if that list is empty. There are no
//! cookies here, so a page can use only a token that its own backend gave to it. No page may use the API key's routes.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::net::header::only;
use crate::settings::LiveSettings;

/// The path where a reader's token also takes PUT.
const SEEN: &str = "/v1/users/{user}/seen";

/// The path where a reader's token takes PUT and DELETE, and no GET.
const REACTION: &str = "/v1/items/{id}/reactions/{kind}/{user}";

/// The path where a reader's token reads comments and writes one.
const COMMENTS: &str = "/v1/items/{id}/comments";

/// The path of one comment, which a reader's token reads, edits and deletes.
const COMMENT: &str = "/v1/items/{id}/comments/{comment}";

/// The path of a session that only receives. A page that sends its token in a header uses `fetch`; after a break it
/// sends `Last-Event-ID` as a header too.
const ONE_WAY: &str = "/connection/uni_sse";

/// The paths whose GET takes a reader's token.
const FOR_READERS: &[&str] = &[
    "/v1/items",
    "/v1/items/{id}",
    "/v1/users/{user}",
    COMMENTS,
    COMMENT,
    "/v1/items/{id}/reactions",
    "/v1/items/{id}/reposts",
    "/v1/search/items",
    "/v1/search/users",
    "/v1/users/{user}/following",
    "/v1/users/{user}/requests",
    "/v1/users/{user}/muted",
    "/v1/users/{user}/hidden",
    "/v1/users/{user}/blocked",
    "/v1/users/{user}/lists",
    "/v1/users/{user}/lists/{list}",
    "/v1/users/{user}/feed",
    "/v1/users/{user}/changes",
    SEEN,
    "/v1/users/{user}/outbox",
    "/v1/users/{user}/sent",
    "/v1/users/{user}/sessions",
    ONE_WAY,
];

/// The paths of sessions where WebSocket is blocked, each with its method.
const FOR_SESSIONS: &[(&str, &str)] =
    &[("/connection/http_stream", "POST"), ("/connection/sse", "GET"), ("/emulation", "POST")];

/// What pages may send to a path: the methods, and the headers for which a browser needs a permission.
fn shared(path: &str) -> Option<(&'static str, &'static str)> {
    if path == SEEN {
        return Some(("GET, PUT", "Authorization, Content-Type"));
    }
    if path == REACTION {
        return Some(("PUT, DELETE", "Authorization"));
    }
    if path == COMMENTS {
        return Some(("GET, POST", "Authorization, Content-Type, Idempotency-Key"));
    }
    if path == COMMENT {
        return Some(("GET, PATCH, DELETE", "Authorization, Content-Type, If-Match"));
    }
    if path == ONE_WAY {
        return Some(("GET", "Authorization, Last-Event-ID"));
    }
    if FOR_READERS.contains(&path) {
        return Some(("GET", "Authorization"));
    }
    FOR_SESSIONS.iter().find(|(known, _)| *known == path).map(|(_, method)| (*method, "Content-Type"))
}

/// The middleware around every route: answers the browser's question, and names the allowed origin in answers.
pub(super) async fn share(State(settings): State<Arc<LiveSettings>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let Some(shared) = path.and_then(|path| shared(path.as_str())) else { return next.run(request).await };
    let allowed = allowed(request.headers(), &settings.now().allowed_origins);
    let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&allowed, asked) {
        (Some(_), Some(_)) if request.method() == Method::OPTIONS => permission(shared),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers
            .insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("ETag, Retry-After, X-Request-Id"));
    }
    response
}

/// The answer to the browser's question; the browser may remember it for ten minutes.
fn permission((method, headers): (&'static str, &'static str)) -> Response {
    let permission = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, method),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, headers),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, permission).into_response()
}

/// The origin that the request names, if it names exactly one origin and that origin may see the answer.
fn allowed(headers: &HeaderMap, origins: &[String]) -> Option<HeaderValue> {
    let origin = only(headers, header::ORIGIN)?;
    (origins.is_empty() || origins.iter().any(|allowed| origin == allowed.as_str())).then(|| origin.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_may_read_exactly_what_the_document_offers_to_readers() {
        let document: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("the document is JSON");
        let paths = document["paths"].as_object().expect("paths is an object");
        let readers = |operation: &serde_json::Value| operation["security"].to_string().contains("readerToken");
        let mut offered: Vec<&str> =
            paths.iter().filter(|(_, path)| readers(&path["get"])).map(|(name, _)| &**name).collect();
        let mut shared = FOR_READERS.to_vec();
        offered.sort_unstable();
        shared.sort_unstable();
        assert_eq!(shared, offered);
        assert!(readers(&document["paths"][REACTION]["put"]) && readers(&document["paths"][REACTION]["delete"]));
        assert_eq!(super::shared(REACTION), Some(("PUT, DELETE", "Authorization")));
        assert_eq!(super::shared(ONE_WAY), Some(("GET", "Authorization, Last-Event-ID")));
        assert!(readers(&document["paths"][COMMENTS]["post"]) && readers(&document["paths"][COMMENT]["patch"]));
        assert!(super::shared(COMMENT).is_some_and(|(methods, _)| methods == "GET, PATCH, DELETE"));
    }
}
