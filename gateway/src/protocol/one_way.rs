//! The protocol for a client that only listens: JSON as events of `text/event-stream`, without ids of commands.
//!
//! ```text
//!   data: {"connect":{…}}                              the session has begun
//!   id: 2:17    data: {"subscribe":{…}}                where the feed begins, and whether a position was recovered
//!   id: 2:18    data: {"channel":"feed","pub":{…}}     a change
//!   data: {"disconnect":{…}}                           the session has ended
//!   :                                                  a ping, which a client skips
//! ```
//!
//! An `id` is a position. An `EventSource` that connects again sends the last one by itself, so it misses nothing.

use std::io::Write;

use feedgate_common::Position;
use serde::Serialize;

use super::codes::{Close, Refusal};
use super::json;
use super::reply::{Reply, Subscribed, Wrong};

/// Our ping: a comment, which clients skip.
pub(super) const PING: &[u8] = b":\n\n";

/// Appends the event of a result; nothing for the results of commands that such a client cannot send.
pub(super) fn result(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Connect(connected) => event(out, "connect", connected),
        Reply::Subscribe(opened, sight, _) => {
            id(out, opened.position);
            event(out, "subscribe", &Subscribed::of(opened, *sight, None));
        }
        Reply::Watch(standing) => event(out, "subscribe", &Subscribed::from(standing)),
        _ => {}
    }
}

/// Appends the event of a refusal.
pub(super) fn error(out: &mut Vec<u8>, refusal: &Refusal) {
    event(out, "error", &Wrong::from(refusal));
}

/// Appends the event of one change. `channel` is the name of a feed: nothing in it needs an escape.
pub(super) fn push(out: &mut Vec<u8>, channel: &str, at: Position, change: &[u8]) {
    id(out, at);
    publication(out, channel, at.offset, change);
}

/// Appends an event of a channel without an id of the event. The offset is 0 if the event is no change of the log.
pub(super) fn publication(out: &mut Vec<u8>, channel: &str, offset: u64, data: &[u8]) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, r#"data: {{"channel":"{channel}","pub":"#);
    json::publication(out, offset, data);
    out.extend_from_slice(b"}\n\n");
}

/// Appends the event that ends a subscription. Nothing in `channel` and `reason` needs an escape.
pub(super) fn unsubscribed(out: &mut Vec<u8>, channel: &str, code: u16, reason: &str) {
    let _ = write!(
        out,
        "data: {{\"channel\":\"{channel}\",\"unsubscribe\":{{\"code\":{code},\"reason\":\"{reason}\"}}}}\n\n"
    );
}

/// Appends the event that ends the session. Nothing in `reason` needs an escape.
pub(super) fn disconnect(out: &mut Vec<u8>, close: Close, reason: &str) {
    let code = close.code();
    let _ = write!(out, "data: {{\"disconnect\":{{\"code\":{code},\"reason\":\"{reason}\"}}}}\n\n");
}

fn id(out: &mut Vec<u8>, at: Position) {
    let _ = writeln!(out, "id: {}:{}", at.epoch, at.offset);
}

fn event(out: &mut Vec<u8>, key: &str, value: &impl Serialize) {
    let _ = write!(out, r#"data: {{"{key}":"#);
    serde_json::to_writer(&mut *out, value).expect("our own values serialize, and a Vec takes all");
    out.extend_from_slice(b"}\n\n");
}

#[cfg(test)]
mod tests {
    use feedgate_common::Epoch;

    use super::super::reply::{Connected, Opened, Refreshed, Standing};
    use super::super::{ErrorCode, Format};
    use super::*;

    #[test]
    fn each_event_ends_and_a_position_is_its_id() {
        let at = Position { epoch: Epoch(2), offset: 17 };
        let mut out = Vec::new();
        result(&mut out, &Reply::Subscribe(Opened { position: at, was_recovering: true, recovered: true }, None, None));
        push(&mut out, "feed", Position { offset: 18, ..at }, br#"{"op":"forget","author":"bob"}"#);
        disconnect(&mut out, Close::Expired, "expired");
        let text = String::from_utf8(out).unwrap();
        let events: Vec<&str> = text.split_terminator("\n\n").collect();
        assert!(events[0].starts_with("id: 2:17\ndata: {\"subscribe\":{"), "{text}");
        let pushed = r#"data: {"channel":"feed","pub":{"offset":18,"data":{"op":"forget","author":"bob"}}}"#;
        assert_eq!(events[1], format!("id: 2:18\n{pushed}"));
        assert_eq!(events[2], r#"data: {"disconnect":{"code":3005,"reason":"expired"}}"#);
        assert_eq!(events.len(), 3);
    }

    #[test]
    fn what_is_around_an_item_is_an_event_without_an_id() {
        let mut out = Vec::new();
        publication(&mut out, "item:9", 0, br#"{"op":"missed"}"#);
        unsubscribed(&mut out, "item:9", 2001, "gone");
        let text = String::from_utf8(out).unwrap();
        let told = r#"data: {"channel":"item:9","pub":{"offset":0,"data":{"op":"missed"}}}"#;
        let ended = r#"data: {"channel":"item:9","unsubscribe":{"code":2001,"reason":"gone"}}"#;
        assert_eq!(text, format!("{told}\n\n{ended}\n\n"));
    }

    #[test]
    fn a_connect_a_watch_and_a_refusal_are_events_with_their_names() {
        assert_eq!(Format::OneWay.ping(), b":\n\n", "a comment, which clients skip");
        let refreshed = Refreshed { client: "n-1".into(), version: "1".into(), expires: true, ttl: 9 };
        let mut out = vec![];
        result(&mut out, &Reply::Watch(Standing { data: b"{}".to_vec() }));
        result(&mut out, &Reply::Connect(Connected { ping: 25, ..Default::default() }));
        result(&mut out, &Reply::Refresh(refreshed));
        error(&mut out, &ErrorCode::TokenExpired.into());
        let text = String::from_utf8(out).unwrap();
        let name =
            |event: &str| event.strip_prefix("data: {").and_then(|rest| Some(rest.split_once(':')?.0.to_owned()));
        let names: Option<Vec<String>> = text.split_terminator("\n\n").map(name).collect();
        assert_eq!(names.unwrap(), [r#""subscribe""#, r#""connect""#, r#""error""#], "a refresh is no event: {text}");
    }
}
