//! Headers of requests that several rooms read.

use hyper::header::{AsHeaderName, HeaderMap, HeaderName, HeaderValue};

/// The header with the id of a request, which the answer has too.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The value of a header that a request has exactly once; `None` if the request has no such header, or several.
pub(crate) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    lines.next().filter(|_| lines.next().is_none())
}
