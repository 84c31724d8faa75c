//! Headers of requests that several rooms read.

use hyper::header::{AsHeaderName, HeaderMap, HeaderName, HeaderValue};

/// The header with the id of a request, which the answer has too.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The value of a header that stands there exactly once; `None` if it is not there, or stands there twice.
pub(crate) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    lines.next().filter(|_| lines.next().is_none())
}
