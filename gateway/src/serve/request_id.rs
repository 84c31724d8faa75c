//! The id of a request: the one that the caller gives in `X-Request-Id`, or a fresh one. The answer and each log line
//! of the request contain this id.
//!
//! Invariant: an id is 1 to [`MAX`] visible ASCII characters, so it breaks no line of a log and looks like no other
//! field.

use hyper::header::{HeaderMap, HeaderValue};
use tracing::Span;

use super::stream::number;
use crate::net::header::{REQUEST_ID, only};

/// The most bytes of an id that a caller may choose.
const MAX: usize = 128;

/// The id of one request.
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    /// The id that the request names. If there is none, if there are two, or if the id is not usable: a fresh id of 32
    /// hexadecimal digits.
    pub(super) fn of(request: &HeaderMap) -> Self {
        let named = only(request, REQUEST_ID).filter(|id| is_usable(id.as_bytes()));
        Self(named.cloned().unwrap_or_else(fresh))
    }

    /// The span of all that is done for the request. It has the highest level, so that no filter takes it from a log
    /// line.
    pub(super) fn span(&self) -> Span {
        let id = self.0.to_str().expect("visible ASCII is text");
        tracing::error_span!("request", request_id = %id)
    }

    /// Puts the id into the head of an answer, or of the request itself, for the code that answers the request.
    pub(super) fn mark(&self, head: &mut HeaderMap) {
        head.insert(REQUEST_ID, self.0.clone());
    }
}

fn is_usable(id: &[u8]) -> bool {
    (1..=MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn fresh() -> HeaderValue {
    HeaderValue::from_str(&format!("{:032x}", number())).expect("digits are a legal header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(named: &[&[u8]]) -> String {
        let mut request = HeaderMap::new();
        for id in named {
            request.append(REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
        }
        let mut answer = HeaderMap::new();
        RequestId::of(&request).mark(&mut answer);
        answer[REQUEST_ID].to_str().unwrap().to_owned()
    }

    #[test]
    fn an_id_of_visible_ascii_is_taken_as_it_is_up_to_its_bound() {
        let longest = "x".repeat(MAX);
        for id in ["7", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "~!{}=\"'", &longest] {
            assert_eq!(of(&[id.as_bytes()]), id);
        }
    }

    #[test]
    fn any_other_id_is_ignored_and_a_fresh_one_is_there_each_time() {
        let too_long = "x".repeat(MAX + 1);
        let cases: [&[&[u8]]; 7] =
            [&[], &[b""], &[b"a b"], &[b"a\tb"], &["ä".as_bytes()], &[too_long.as_bytes()], &[b"one", b"two"]];
        let ids: Vec<String> = cases.iter().map(|named| of(named)).collect();
        let is_fresh = |id: &String| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(ids.iter().all(is_fresh), "{ids:?}");
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), cases.len());
    }
}
