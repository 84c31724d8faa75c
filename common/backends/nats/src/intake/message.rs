//! A message of NATS as a call, and an answer as a message.

use async_nats::{HeaderMap, HeaderName, HeaderValue, Message};
use feedgate_common::intake::{self, Answer, Call, KEY_HEADER, Wrong};

/// The header of an answer that holds the HTTP status.
const STATUS: &str = "Feed-Status";

/// The header of a refused call that holds its problem, as JSON.
const PROBLEM: &str = "Feed-Problem";

/// How the names of headers begin that have a meaning for NATS. Copied into another message, such a header would have
/// its effect again.
const OF_NATS: &str = "nats-";

/// The headers by which the libraries of NATS find out that a service has failed.
const ERROR: &str = "Nats-Service-Error";
const ERROR_CODE: &str = "Nats-Service-Error-Code";

fn text(name: &HeaderName) -> &str {
    name.as_ref()
}

/// Reads the call of a message whose subject begins with `root`.
pub(super) fn read(root: &str, message: &Message) -> Result<Call, Wrong> {
    let subject = message.subject.strip_prefix(root).unwrap_or_default();
    let header = |name: &str| {
        let value = message.headers.as_ref()?.iter().find(|(known, _)| text(known).eq_ignore_ascii_case(name))?;
        value.1.first().map(|value: &HeaderValue| value.as_str().to_owned())
    };
    intake::read(subject, header, message.payload.to_vec())
}

/// The headers of a refused call: the headers of its message, except those of NATS; its key, by which NATS recognizes a
/// repetition; and its problem.
pub(super) fn refused(of: Option<&HeaderMap>, key: &str, problem: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in of.into_iter().flat_map(HeaderMap::iter) {
        let begins = text(name).get(..OF_NATS.len());
        if begins.is_some_and(|begins| begins.eq_ignore_ascii_case(OF_NATS)) {
            continue;
        }
        for value in values {
            headers.append(name.clone(), value.clone());
        }
    }
    headers.insert(KEY_HEADER, key);
    headers.insert(PROBLEM, problem);
    headers
}

/// The headers of the message that answers a call.
pub(super) fn answer(answer: &Answer) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(STATUS, answer.status.to_string().as_str());
    for (name, value) in &answer.headers {
        let name = match &**name {
            "content-type" => "Content-Type",
            "etag" => "ETag",
            "location" => "Location",
            "retry-after" => "Retry-After",
            _ => continue,
        };
        headers.insert(name, value.as_str());
    }
    if !answer.is_done() {
        headers.insert(ERROR_CODE, answer.status.to_string().as_str());
        headers.insert(ERROR, "refused; the body is the problem");
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_keeps_the_headers_of_its_message_but_for_those_that_nats_would_obey() {
        let mut of = HeaderMap::new();
        of.insert("Trace", "7");
        of.insert("nats-Expected-Stream", "FEED_IN");
        of.insert("Nats-Msg-Id", "old");
        let headers = refused(Some(&of), "key", "{}");
        let get = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        assert_eq!([get("Trace"), get("Nats-Msg-Id"), get(PROBLEM)], ["7", "key", "{}"].map(|s| Some(s.to_owned())));
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn an_answer_tells_its_status_and_whether_it_is_a_problem() {
        let of = |status| answer(&Answer { status, headers: vec![("etag".into(), "\"2\"".into())], body: vec![] });
        let (done, failed) = (of(200), of(412));
        let get = |headers: &HeaderMap, name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        assert_eq!(get(&done, STATUS).as_deref(), Some("200"));
        assert_eq!((get(&done, "ETag").as_deref(), get(&done, ERROR_CODE)), (Some("\"2\""), None));
        assert_eq!(get(&failed, ERROR_CODE).as_deref(), Some("412"));
    }
}
