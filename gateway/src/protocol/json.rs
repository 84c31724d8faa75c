//! The protocol as JSON: a text frame holds one or more objects, each on its own line.
//!
//! ```text
//!   {"id":2,"subscribe":{…}}     a command: an id and exactly one verb
//!   {"id":2,"subscribe":{…}}     its reply
//!   {"push":{"channel":…}}       what a device is sent without having asked
//!   {}                           a ping, and the pong that answers it
//!   {"id":3,"send":{…}}          a message nobody answers, even with an id
//! ```

use std::io::Write;

use feedgate_common::named::NamedFeeds;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::codes::Refusal;
use super::command::{Malformed, Message};
use super::label::Label;
use super::reply::{Empty, History, Present, Reply, Stats, Subscribed, Wrong, to_json};
use super::request::{Asked, Request, contents};
use super::sight_json::SightJson;

/// Our ping, and a device's pong.
pub(super) const PING: &[u8] = b"{}";

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    id: u32,
    #[serde(borrow)]
    connect: Option<&'a RawValue>,
    subscribe: Option<&'a RawValue>,
    unsubscribe: Option<&'a RawValue>,
    publish: Option<&'a RawValue>,
    rpc: Option<&'a RawValue>,
    history: Option<&'a RawValue>,
    presence: Option<&'a RawValue>,
    presence_stats: Option<&'a RawValue>,
    refresh: Option<&'a RawValue>,
    sub_refresh: Option<&'a RawValue>,
    ping: Option<&'a RawValue>,
    send: Option<&'a RawValue>,
}

/// Reads one line. `feeds` are the channels that exist.
pub(crate) fn decode(line: &str, feeds: &NamedFeeds) -> Result<Message, Malformed> {
    let wire: Wire<'_> = serde_json::from_str(line).map_err(|_| Malformed)?;
    Request {
        id: wire.id,
        connect: asked(wire.connect, "connect"),
        subscribe: asked(wire.subscribe, "subscribe"),
        unsubscribe: asked(wire.unsubscribe, "unsubscribe"),
        rpc: asked(wire.rpc, "rpc"),
        history: asked(wire.history, "history"),
        presence: asked(wire.presence, "presence"),
        presence_stats: asked(wire.presence_stats, "presence_stats"),
        refresh: asked(wire.refresh, "refresh"),
        ping: wire.ping.is_some(),
        send: wire.send.is_some(),
        publish: wire.publish.is_some(),
        sub_refresh: wire.sub_refresh.is_some(),
        is_empty: line.trim() == "{}",
    }
    .check(feeds)
}

fn asked<T: DeserializeOwned>(raw: Option<&RawValue>, verb: &str) -> Asked<T> {
    raw.map(|raw| contents(raw.get().as_bytes(), verb))
}

/// Appends the line `{"id":…,"verb":{…}}` of a result.
pub(super) fn result(out: &mut Vec<u8>, id: u32, reply: &Reply) {
    match reply {
        Reply::Connect(connected) => object(out, id, "connect", connected),
        Reply::Subscribe(opened, sight, number) => {
            object(out, id, "subscribe", &Subscribed::of(opened, *sight, *number));
        }
        Reply::Watch(standing) => object(out, id, "subscribe", &Subscribed::from(standing)),
        Reply::Unsubscribe => object(out, id, "unsubscribe", &Empty {}),
        Reply::Acked => around(out, id, r#""rpc":{"data":"#, b"{}", "}"),
        Reply::Seen(sight) => around(out, id, r#""rpc":{"data":"#, &to_json(&SightJson::from(*sight)), "}"),
        Reply::Page(page) => around(out, id, r#""rpc":{"data":"#, &page.bytes, "}"),
        Reply::History(History { epoch, offset, publications }) => {
            let head = format!(r#""history":{{"epoch":"{epoch}","offset":{offset},"publications":["#);
            around(out, id, &head, &publications.bytes, "]}");
        }
        Reply::Presence(presence) => object(out, id, "presence", &Present { presence: presence.clone() }),
        Reply::PresenceStats(devices) => object(out, id, "presence_stats", &Stats::of(*devices)),
        Reply::Refresh(refreshed) => object(out, id, "refresh", refreshed),
        Reply::Pong => object(out, id, "ping", &Empty {}),
    }
}

/// Appends the line `{"id":…,"error":{…}}` of a refusal.
pub(super) fn error(out: &mut Vec<u8>, id: u32, refusal: &Refusal) {
    object(out, id, "error", &Wrong::from(refusal));
}

/// Appends a publication: a change, as JSON, at its offset.
pub(super) fn publication(out: &mut Vec<u8>, offset: u64, change: &[u8]) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, r#"{{"offset":{offset},"data":"#);
    out.extend_from_slice(change);
    out.push(b'}');
}

/// Appends a push of one publication.
pub(super) fn push(out: &mut Vec<u8>, label: Label<'_>, offset: u64, change: &[u8]) {
    let _ = match label.number {
        Some(number) => write!(out, r#"{{"push":{{"id":{number},"pub":"#),
        None => write!(out, r#"{{"push":{{"channel":"{}","pub":"#, label.name),
    };
    publication(out, offset, change);
    out.extend_from_slice(b"}}");
}

/// Appends the push that ends a subscription. Nothing in `channel` and `reason` needs an escape.
pub(super) fn unsubscribed(out: &mut Vec<u8>, channel: &str, code: u16, reason: &str) {
    let _ = write!(out, r#"{{"push":{{"channel":"{channel}","unsubscribe":{{"code":{code},"reason":"{reason}"}}}}}}"#);
}

/// Appends the push that ends a session. Nothing in `reason` needs an escape.
pub(super) fn disconnect(out: &mut Vec<u8>, code: u16, reason: &str) {
    let _ = write!(out, r#"{{"push":{{"disconnect":{{"code":{code},"reason":"{reason}"}}}}}}"#);
}

fn object(out: &mut Vec<u8>, id: u32, key: &str, value: &impl Serialize) {
    let _ = write!(out, r#"{{"id":{id},"{key}":"#);
    serde_json::to_writer(&mut *out, value).expect("our own values serialize, and a Vec takes all");
    out.push(b'}');
}

/// Appends an object whose large part, `json`, is encoded already.
fn around(out: &mut Vec<u8>, id: u32, head: &str, json: &[u8], tail: &str) {
    out.reserve_exact(json.len() + head.len() + 32);
    let _ = write!(out, r#"{{"id":{id},{head}"#);
    out.extend_from_slice(json);
    out.extend_from_slice(tail.as_bytes());
    out.push(b'}');
}
