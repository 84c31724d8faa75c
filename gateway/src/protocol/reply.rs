//! The replies to a device's commands. The result object is always there, even if empty: some SDKs index it.

use std::collections::BTreeMap;

use compact_str::CompactString;
use feedgate_common::{Epoch, Position};
use serde::Serialize;

use super::codes::{ErrorCode, Refusal};
use crate::limits::budget::Reservation;

/// The result of a command, by its verb.
#[derive(Debug)]
pub(crate) enum Reply {
    Connect(Connected),
    Subscribe(Opened),
    Unsubscribe,
    /// The result of `rpc ack`.
    Acked,
    /// The result of `rpc page`.
    Page(Large),
    History(History),
    Presence(BTreeMap<CompactString, Presence>),
    PresenceStats(usize),
    Refresh(Refreshed),
    Pong,
}

/// The result of `connect`. No field that an SDK looks at is ever empty or zero.
#[derive(Debug, Serialize)]
pub(crate) struct Connected {
    pub(crate) client: CompactString,
    pub(crate) version: &'static str,
    /// Seconds between pings, at least 1.
    pub(crate) ping: u32,
    /// Whether pings are to be answered.
    pub(crate) pong: bool,
    pub(crate) expires: bool,
    /// Seconds until the token expires, at least 1.
    pub(crate) ttl: u64,
    pub(crate) session: CompactString,
    pub(crate) node: String,
}

/// The result of `subscribe`: how the subscription began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The position that it starts from.
    pub position: Position,
    /// Whether the device asked to recover from a position.
    pub was_recovering: bool,
    /// Whether it was recovered: then no change is missing (I9).
    pub recovered: bool,
}

/// The result of `refresh`.
#[derive(Debug, Serialize)]
pub(crate) struct Refreshed {
    pub(crate) client: CompactString,
    pub(crate) version: &'static str,
    pub(crate) expires: bool,
    /// Seconds until the token expires, at least 1.
    pub(crate) ttl: u64,
}

/// The result of `history`.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) epoch: Epoch,
    pub(crate) offset: u64,
    /// The publications, with commas between them.
    pub(crate) publications: Large,
}

/// JSON on one line that may be large, and the bytes of memory that are counted for it.
#[derive(Debug)]
pub(crate) struct Large {
    pub(crate) json: Vec<u8>,
    pub(crate) held: Option<Reservation>,
}

/// One device of the user, as `presence` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Presence {
    pub(crate) client: CompactString,
    pub(crate) user: String,
    pub(crate) conn_info: PresenceInfo,
}

/// What this server knows of the device.
#[derive(Debug, Serialize)]
pub(crate) struct PresenceInfo {
    pub(crate) device: String,
    pub(crate) node: String,
    pub(crate) since: i64,
}

impl Reply {
    /// Takes out the bytes of memory that are counted for the reply, if it may be large.
    pub(crate) fn take_held(&mut self) -> Option<Reservation> {
        match self {
            Self::Page(large) | Self::History(History { publications: large, .. }) => large.held.take(),
            _ => None,
        }
    }
}

/// Appends the line `{"id":…,"verb":{…}}` of a result.
pub(crate) fn result(out: &mut Vec<u8>, id: u32, reply: &Reply) {
    match reply {
        Reply::Connect(connected) => object(out, id, "connect", connected),
        Reply::Subscribe(opened) => object(out, id, "subscribe", &Subscribed::from(opened)),
        Reply::Unsubscribe => object(out, id, "unsubscribe", &Empty {}),
        Reply::Acked => object(out, id, "rpc", &Rpc { data: Empty {} }),
        Reply::Page(page) => {
            out.reserve_exact(page.json.len() + 64);
            out.extend_from_slice(format!(r#"{{"id":{id},"rpc":{{"data":"#).as_bytes());
            out.extend_from_slice(&page.json);
            out.extend_from_slice(b"}}");
        }
        Reply::History(history) => {
            let History { epoch, offset, publications } = history;
            let head = format!(r#"{{"id":{id},"history":{{"epoch":"{epoch}","offset":{offset},"publications":["#);
            out.reserve_exact(publications.json.len() + head.len() + 8);
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&publications.json);
            out.extend_from_slice(b"]}}");
        }
        Reply::Presence(presence) => object(out, id, "presence", &Present { presence }),
        Reply::PresenceStats(n) => {
            object(out, id, "presence_stats", &Stats { num_clients: *n, num_users: usize::from(*n > 0) });
        }
        Reply::Refresh(refreshed) => object(out, id, "refresh", refreshed),
        Reply::Pong => object(out, id, "ping", &Empty {}),
    }
}

/// Appends the line `{"id":…,"error":{…}}` of a refusal.
pub(crate) fn error(out: &mut Vec<u8>, id: u32, refusal: &Refusal) {
    #[derive(Serialize)]
    struct Wire<'a> {
        code: u16,
        message: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        temporary: bool,
    }
    let Refusal { code, message } = refusal;
    object(out, id, "error", &Wire { code: ErrorCode::code(*code), message, temporary: code.temporary() });
}

fn object(out: &mut Vec<u8>, id: u32, key: &str, value: &impl Serialize) {
    out.extend_from_slice(format!(r#"{{"id":{id},"{key}":"#).as_bytes());
    serde_json::to_writer(&mut *out, value).expect("our own values serialize, and a Vec takes all");
    out.push(b'}');
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Rpc<T> {
    data: T,
}

#[derive(Serialize)]
struct Present<'a> {
    presence: &'a BTreeMap<CompactString, Presence>,
}

#[derive(Serialize)]
struct Stats {
    num_clients: usize,
    num_users: usize,
}

#[derive(Serialize)]
struct Subscribed {
    recoverable: bool,
    /// One SDK advances recovered positions only if this is true.
    positioned: bool,
    epoch: Epoch,
    offset: u64,
    was_recovering: bool,
    recovered: bool,
}

impl From<&Opened> for Subscribed {
    fn from(opened: &Opened) -> Self {
        Self {
            recoverable: true,
            positioned: true,
            epoch: opened.position.epoch,
            offset: opened.position.offset,
            was_recovering: opened.was_recovering,
            recovered: opened.recovered,
        }
    }
}
