//! The error answers of the API: RFC 9457 `application/problem+json`.
//!
//! `type` is one of a closed list of paths, `/problems/{name}`, which this server explains when they are fetched. A
//! program branches on `type`; a person reads `detail`, which names what was wrong and what would be right. A request
//! that got a 4xx has changed nothing.

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::Refused;
pub(crate) use feedgate_common::ids::short;
use feedgate_common::{Position, StoreError};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::limits::budget::Full;
use crate::limits::log_limit::LogLimit;
use crate::limits::quotas::TooMany;

macro_rules! kinds {
    ($($variant:ident $name:literal $status:ident $title:literal $about:literal;)*) => {
        /// All kinds of problems.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind { $(#[doc = $about] $variant,)* }

        impl Kind {
            /// All kinds, in the order of their status.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The last segment of `type`.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The HTTP status of the answer.
            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            pub(crate) fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

kinds! {
    MalformedJson "malformed-json" BAD_REQUEST "Malformed JSON"
        "The request body is not JSON; the detail has line and column.";
    BadParameter "bad-parameter" BAD_REQUEST "Bad parameter"
        "A part of the path or the query is not what the route takes; `field` names it.";
    BadHeader "bad-header" BAD_REQUEST "Bad header"
        "A request header is not what the route takes; `field` names it.";
    NoCredentials "no-credentials" UNAUTHORIZED "Credentials needed"
        "The request shows no credentials: send `Authorization: Bearer` and the API key or a reader's token.";
    BadCredentials "bad-credentials" UNAUTHORIZED "Credentials refused"
        "The bearer is neither the API key nor a reader's token that is valid now.";
    Forbidden "forbidden" FORBIDDEN "Not allowed"
        "The credentials are good, but not for this: a reader's token only reads, and says what was seen, and only of what is that reader's.";
    NoSuchRoute "no-such-route" NOT_FOUND "No such route"
        "This path is not part of the API.";
    NotFound "not-found" NOT_FOUND "Not found"
        "What the path or the query names does not exist, or is not visible to the reader who asks.";
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED "Method not allowed"
        "The path exists, but not with this method; the header `Allow` lists those it has.";
    TooSlow "too-slow" REQUEST_TIMEOUT "Request too slow"
        "The request body did not arrive in time.";
    Conflict "conflict" CONFLICT "Conflict"
        "The id, foreign_id or idempotency key stands for another payload; or an author whom everyone follows was to be of another class.";
    Gone "gone" GONE "Position gone"
        "The log no longer tells what came after this position: load the feed page and go on from its position; of events, begin without a position.";
    VersionMismatch "version-mismatch" PRECONDITION_FAILED "Version mismatch"
        "The item, or the comment, has another version than `If-Match` asks for: read it again.";
    TooLarge "too-large" PAYLOAD_TOO_LARGE "Request too large"
        "The request body has more bytes than the route takes.";
    UnsupportedMediaType "unsupported-media-type" UNSUPPORTED_MEDIA_TYPE "Unsupported media type"
        "The request body must be `application/json` in UTF-8, and no `Content-Encoding` may say that it is coded.";
    InvalidField "invalid-field" UNPROCESSABLE_ENTITY "Invalid field"
        "The body is JSON, but one of its values is not what the route takes; `pointer` (RFC 6901) shows where.";
    TooManyRequests "too-many-requests" TOO_MANY_REQUESTS "Too many requests"
        "A reader, or all readers at one address, have too many reads at once or begin too many per second: retry after `Retry-After` seconds.";
    Internal "internal" INTERNAL_SERVER_ERROR "Internal error"
        "The server found its own data damaged; the operator has the details.";
    Unavailable "unavailable" SERVICE_UNAVAILABLE "Unavailable"
        "A store does not answer, or says in the detail why it cannot work: retry after `Retry-After` seconds. A write may or may not have happened; repeating it is safe with an idempotency key.";
    Overloaded "overloaded" SERVICE_UNAVAILABLE "Overloaded"
        "There is too much to do and nothing was written: retry after `Retry-After` seconds.";
}

/// The part of the request that a problem is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Request,
    /// The value in the body at this JSON pointer.
    Pointer(String),
    /// A path segment, query parameter or header.
    Field(Cow<'static, str>),
}

/// The error answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The kind of the problem.
    pub(crate) kind: Kind,
    pub(super) detail: String,
    at: At,
    position: Option<Position>,
    retry_after_secs: u32,
}

impl Problem {
    /// A problem of the whole request; `detail` names what was wrong and what would be right.
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), at: At::Request, position: None, retry_after_secs: 1 }
    }

    /// A problem of the value in the body that the JSON pointer shows.
    pub(crate) fn at_pointer(pointer: String, detail: impl Into<String>) -> Self {
        Self { at: At::Pointer(pointer), ..Self::new(Kind::InvalidField, detail) }
    }

    /// A problem of a path segment or a query parameter.
    pub(crate) fn parameter(name: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self { at: At::Field(name.into()), ..Self::new(Kind::BadParameter, detail) }
    }

    /// A problem of a header.
    pub(crate) fn header(name: &'static str, detail: impl Into<String>) -> Self {
        Self { at: At::Field(name.into()), ..Self::new(Kind::BadHeader, detail) }
    }

    /// The problem for a position from which the log cannot go on; `head` is the log's last position.
    pub(crate) fn gone(head: Position) -> Self {
        let detail = "the change log cannot go on from this position: load the feed page and go on from its \
                      position, not from this one";
        Self { position: Some(head), ..Self::new(Kind::Gone, detail) }
    }

    /// Makes this a problem of the operation at `pointer` of the body; or of a field of that operation, if the problem
    /// names a field already.
    pub(crate) fn within(mut self, pointer: &str) -> Self {
        self.at = match self.at {
            At::Request => At::Pointer(pointer.to_owned()),
            At::Pointer(field) => At::Pointer(format!("{pointer}{field}")),
            field @ At::Field(_) => field,
        };
        self
    }

    /// Says that a wrong value is the one at `pointer`, if the problem does not say it yet. Another problem, such as a
    /// store that does not answer, stays as it is.
    pub(crate) fn of_value(self, pointer: &str) -> Self {
        match (self.kind, &self.at) {
            (Kind::InvalidField, At::Request) => self.within(pointer),
            _ => self,
        }
    }

    /// The header that the response needs for this kind, if any.
    pub(super) fn header_lines(&self) -> Option<(HeaderName, HeaderValue)> {
        match self.kind {
            Kind::NoCredentials => {
                Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"feedgate\"")))
            }
            Kind::BadCredentials => {
                let challenge = "Bearer realm=\"feedgate\", error=\"invalid_token\"";
                Some((header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
            }
            Kind::Unavailable | Kind::Overloaded | Kind::TooManyRequests => {
                Some((header::RETRY_AFTER, self.retry_after_secs.into()))
            }
            _ => None,
        }
    }
}

/// The log lines about requests that found a store unavailable.
static UNAVAILABLE: LogLimit = LogLimit::new();

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) | StoreError::Misconfigured(cause) => {
                if let Some(suppressed) = UNAVAILABLE.admit() {
                    tracing::warn!(%cause, suppressed, "a request found a store unavailable");
                }
                Self::new(
                    Kind::Unavailable,
                    "a store does not answer; retry, with the same idempotency key if you write",
                )
            }
            StoreError::Down(why) => {
                Self::new(Kind::Unavailable, format!("{why}; retry, with the same idempotency key if you write"))
            }
            StoreError::Overloaded { retry_after_ms } => Self {
                retry_after_secs: retry_after_ms.div_ceil(1000).max(1),
                ..Self::new(Kind::Overloaded, "the store has too much to write; nothing of this request was written")
            },
            StoreError::Corrupt(what) => {
                tracing::error!(%what, "a request found a store damaged");
                Self::new(Kind::Internal, "the server found its own data damaged; its log says more")
            }
        }
    }
}

impl From<TooMany> for Problem {
    fn from(too_many: TooMany) -> Self {
        let detail = match too_many {
            TooMany::AtOnce(most) => {
                format!(
                    "a reader or an address may have {most} reads at once; take the answers of the earlier ones first"
                )
            }
            TooMany::PerSec(most) => {
                format!("a reader or an address may begin {most} reads a second; wait, then read again")
            }
        };
        Self::new(Kind::TooManyRequests, detail)
    }
}

impl From<Full> for Problem {
    fn from(full: Full) -> Self {
        match full {
            Full::Share => Self::new(
                Kind::TooManyRequests,
                "too much of what was asked for before has not been taken; take those answers first",
            ),
            Full::Node => Self::new(
                Kind::Overloaded,
                "the server is busy with the answers of others; nothing was read, try again",
            ),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::NoSuchList { .. } | Refused::AudienceTooLarge | Refused::NarrowedEveryones(_) => {
                return Self::at_pointer("/audience".to_owned(), refused.to_string());
            }
            Refused::NoSuchRef(_) => return Self::at_pointer("/ref".to_owned(), refused.to_string()),
            Refused::IdTaken(_)
            | Refused::ForeignIdTaken(..)
            | Refused::KeyReused(_)
            | Refused::StaysEveryones(_)
            | Refused::OlderThanEveryone(_) => Kind::Conflict,
            Refused::FollowsItself(_) | Refused::PrivateEveryones(_) => Kind::InvalidField,
            Refused::NoSuchItem(_) | Refused::NoSuchRequest { .. } => Kind::NotFound,
            Refused::VersionMismatch { .. } => Kind::VersionMismatch,
        };
        Self::new(kind, refused.to_string())
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("/problems/{}", self.kind.name()))?;
        map.serialize_entry("title", self.kind.title())?;
        map.serialize_entry("status", &self.kind.status().as_u16())?;
        map.serialize_entry("detail", &self.detail)?;
        match &self.at {
            At::Request => {}
            At::Pointer(pointer) => map.serialize_entry("pointer", pointer)?,
            At::Field(field) => map.serialize_entry("field", field)?,
        }
        if let Some(position) = &self.position {
            map.serialize_entry("position", position)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let extra = self.header_lines();
        let mut response = (self.kind.status(), Json(&self)).into_response();
        response.extensions_mut().insert(self.kind);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(extra);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_fails_tells_when_to_come_back() {
        let cases = [
            (StoreError::unavailable("connection refused by 10.0.0.7"), 503, Some("1")),
            (StoreError::down("the archive has no room on its disk"), 503, Some("1")),
            (StoreError::Overloaded { retry_after_ms: 20 }, 503, Some("1")),
            (StoreError::Overloaded { retry_after_ms: 2001 }, 503, Some("3")),
            (StoreError::corrupt("a row of 3 bytes"), 500, None),
        ];
        for (error, status, retry_after) in cases {
            let problem = Problem::from(error);
            assert!(!problem.detail.contains("10.0.0.7"), "the cause is for the log");
            let response = problem.into_response();
            assert_eq!(response.status(), status);
            let line = response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!(line, retry_after);
        }
    }

    #[test]
    fn a_store_that_knows_why_it_is_down_has_its_reason_told() {
        let problem = Problem::from(StoreError::down("the archive has no room on its disk"));
        assert!(problem.detail.starts_with("the archive has no room on its disk; retry"), "{}", problem.detail);
    }

    #[test]
    fn names_are_unique_and_what_is_quoted_is_short() {
        let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert_eq!(short(&"ä".repeat(65)), format!("{}…", "ä".repeat(64)));
    }
}
