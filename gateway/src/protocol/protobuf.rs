//! The protocol as Protobuf: a binary frame holds one or more messages, each after its length as a varint.
//!
//! ```text
//!   Command { id, subscribe: … }    a command: an id and exactly one request
//!   Reply { id, subscribe: … }      its reply
//!   Reply { push: … }               what a device is sent without having asked
//!   a message of no bytes           a ping, and the pong that answers it
//! ```
//!
//! The tags are those of `client.proto` (MIT, Copyright (c) 2023 Centrifugal Labs LTD), which lies in `gateway/proto`
//! with its licence. A test compiles it and holds every message here against it.
//!
//! Pushes, pages and histories are written here by hand, so that a change is copied only once into the frame.

use feedgate_common::named::NamedFeeds;
use prost::Message as _;
use prost::encoding::{encode_varint, encoded_len_varint};

use super::codes::Refusal;
use super::command::{Malformed, Message};
use super::label::Label;
use super::reply::{Empty, History, Present, Reply, Stats, Subscribed, Wrong, to_json};
use super::request::{
    ChannelRequest, ConnectRequest, HistoryRequest, RefreshRequest, Request, RpcRequest, SubscribeRequest,
};
use super::sight_json::SightJson;

#[cfg(test)]
mod phones;
#[cfg(test)]
pub(crate) mod schema;
#[cfg(test)]
mod tests;

/// Our ping, and a device's pong: the length of an empty message.
pub(super) const PING: &[u8] = &[0];

/// The most bytes of a reply in front of a large part: three keys with their lengths, and the id.
const HEAD_MAX: usize = 40;

/// `Command` of the schema.
#[derive(Clone, PartialEq, prost::Message)]
struct Command {
    #[prost(uint32, tag = "1")]
    id: u32,
    #[prost(message, optional, tag = "4")]
    connect: Option<ConnectRequest>,
    #[prost(message, optional, tag = "5")]
    subscribe: Option<SubscribeRequest>,
    #[prost(message, optional, tag = "6")]
    unsubscribe: Option<ChannelRequest>,
    #[prost(message, optional, tag = "7")]
    publish: Option<Empty>,
    #[prost(message, optional, tag = "8")]
    presence: Option<ChannelRequest>,
    #[prost(message, optional, tag = "9")]
    presence_stats: Option<ChannelRequest>,
    #[prost(message, optional, tag = "10")]
    history: Option<HistoryRequest>,
    #[prost(message, optional, tag = "11")]
    ping: Option<Empty>,
    #[prost(message, optional, tag = "12")]
    send: Option<Empty>,
    #[prost(message, optional, tag = "13")]
    rpc: Option<RpcRequest>,
    #[prost(message, optional, tag = "14")]
    refresh: Option<RefreshRequest>,
    #[prost(message, optional, tag = "15")]
    sub_refresh: Option<Empty>,
}

/// `Disconnect` of the schema.
#[derive(Clone, PartialEq, prost::Message)]
struct Disconnect {
    #[prost(uint32, tag = "1")]
    code: u32,
    #[prost(string, tag = "2")]
    reason: String,
}

/// `Unsubscribe` of the schema.
#[derive(Clone, PartialEq, prost::Message)]
struct Unsubscribe {
    #[prost(uint32, tag = "2")]
    code: u32,
    #[prost(string, tag = "3")]
    reason: String,
}

/// The messages of a frame. Ends after the first message that is cut off.
pub(crate) fn messages(mut frame: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    std::iter::from_fn(move || {
        if frame.is_empty() {
            return None;
        }
        let length = prost::decode_length_delimiter(&mut frame).ok();
        let Some((message, rest)) = length.and_then(|length| frame.split_at_checked(length)) else {
            frame = &[];
            return Some(Err(Malformed));
        };
        frame = rest;
        Some(Ok(message))
    })
}

/// Reads one message. `feeds` are the channels that exist.
pub(crate) fn decode(message: &[u8], feeds: &NamedFeeds) -> Result<Message, Malformed> {
    let command = Command::decode(message).map_err(|_| Malformed)?;
    Request {
        id: command.id,
        connect: command.connect.map(Ok),
        subscribe: command.subscribe.map(Ok),
        unsubscribe: command.unsubscribe.map(Ok),
        rpc: command.rpc.map(Ok),
        history: command.history.map(Ok),
        presence: command.presence.map(Ok),
        presence_stats: command.presence_stats.map(Ok),
        refresh: command.refresh.map(Ok),
        ping: command.ping.is_some(),
        send: command.send.is_some(),
        publish: command.publish.is_some(),
        sub_refresh: command.sub_refresh.is_some(),
        is_empty: message.is_empty(),
    }
    .check(feeds)
}

/// The fields of `Reply`, and of the messages in it, that are written here by hand.
mod field {
    /// A field that holds bytes: text, bytes, or a message.
    const fn bytes(tag: u8) -> u8 {
        tag << 3 | 2
    }

    /// A field that holds a number.
    const fn number(tag: u8) -> u8 {
        tag << 3
    }

    pub(super) const REPLY_ID: u8 = number(1);
    pub(super) const ERROR: u8 = bytes(2);
    pub(super) const PUSH: u8 = bytes(4);
    pub(super) const CONNECT: u8 = bytes(5);
    pub(super) const SUBSCRIBE: u8 = bytes(6);
    pub(super) const UNSUBSCRIBE: u8 = bytes(7);
    pub(super) const PRESENCE: u8 = bytes(9);
    pub(super) const PRESENCE_STATS: u8 = bytes(10);
    pub(super) const HISTORY: u8 = bytes(11);
    pub(super) const PING: u8 = bytes(12);
    pub(super) const RPC: u8 = bytes(13);
    pub(super) const REFRESH: u8 = bytes(14);
    pub(super) const PUSH_ID: u8 = number(1);
    pub(super) const PUSH_CHANNEL: u8 = bytes(2);
    pub(super) const PUSH_PUBLICATION: u8 = bytes(4);
    pub(super) const PUSH_UNSUBSCRIBE: u8 = bytes(7);
    pub(super) const PUSH_DISCONNECT: u8 = bytes(11);
    pub(super) const PUBLICATION_DATA: u8 = bytes(4);
    pub(super) const PUBLICATION_OFFSET: u8 = number(6);
    pub(super) const RPC_DATA: u8 = bytes(1);
    pub(super) const HISTORY_PUBLICATION: u8 = bytes(1);
    pub(super) const HISTORY_EPOCH: u8 = bytes(2);
    pub(super) const HISTORY_OFFSET: u8 = number(3);
}

/// Appends the reply that holds a result.
pub(super) fn result(out: &mut Vec<u8>, id: u32, reply: &Reply) {
    match reply {
        Reply::Connect(connected) => message(out, id, field::CONNECT, connected),
        Reply::Subscribe(opened, sight, number) => {
            message(out, id, field::SUBSCRIBE, &Subscribed::of(opened, *sight, *number));
        }
        Reply::Watch(standing) => message(out, id, field::SUBSCRIBE, &Subscribed::from(standing)),
        Reply::Unsubscribe => message(out, id, field::UNSUBSCRIBE, &Empty {}),
        Reply::Acked => rpc(out, id, b"{}"),
        Reply::Seen(sight) => rpc(out, id, &to_json(&SightJson::from(*sight))),
        Reply::Page(page) => rpc(out, id, &page.bytes),
        Reply::History(History { epoch, offset, publications }) => {
            let epoch = epoch.to_string();
            let len = publications.bytes.len() + bytes_len(epoch.len()) + number_len(*offset);
            out.reserve_exact(len + HEAD_MAX);
            open(out, id, field::HISTORY, len);
            out.extend_from_slice(&publications.bytes);
            bytes(out, field::HISTORY_EPOCH, epoch.as_bytes());
            number(out, field::HISTORY_OFFSET, *offset);
        }
        Reply::Presence(presence) => message(out, id, field::PRESENCE, &Present { presence: presence.clone() }),
        Reply::PresenceStats(devices) => message(out, id, field::PRESENCE_STATS, &Stats::of(*devices)),
        Reply::Refresh(refreshed) => message(out, id, field::REFRESH, refreshed),
        Reply::Pong => message(out, id, field::PING, &Empty {}),
    }
}

/// Appends the reply that holds a refusal.
pub(super) fn error(out: &mut Vec<u8>, id: u32, refusal: &Refusal) {
    message(out, id, field::ERROR, &Wrong::from(refusal));
}

/// Appends a publication of a history: a change, as JSON, at its offset.
pub(super) fn publication(out: &mut Vec<u8>, offset: u64, change: &[u8]) {
    key(out, field::HISTORY_PUBLICATION, bytes_len(change.len()) + number_len(offset));
    bare_publication(out, offset, change);
}

/// Appends a push of one publication.
pub(super) fn push(out: &mut Vec<u8>, label: Label<'_>, offset: u64, change: &[u8]) {
    let publication = bytes_len(change.len()) + number_len(offset);
    let id = label.number.map(|number| number.get().into());
    let label_len = id.map_or(bytes_len(label.name.len()), number_len);
    open(out, 0, field::PUSH, label_len + bytes_len(publication));
    match id {
        Some(id) => number(out, field::PUSH_ID, id),
        None => bytes(out, field::PUSH_CHANNEL, label.name.as_bytes()),
    }
    key(out, field::PUSH_PUBLICATION, publication);
    bare_publication(out, offset, change);
}

/// Appends the push that ends a subscription.
pub(super) fn unsubscribed(out: &mut Vec<u8>, channel: &str, code: u16, reason: &str) {
    let message = Unsubscribe { code: code.into(), reason: reason.to_owned() };
    let len = message.encoded_len();
    open(out, 0, field::PUSH, bytes_len(channel.len()) + bytes_len(len));
    bytes(out, field::PUSH_CHANNEL, channel.as_bytes());
    key(out, field::PUSH_UNSUBSCRIBE, len);
    message.encode(out).expect("a Vec takes all");
}

/// Appends the push that ends a session.
pub(super) fn disconnect(out: &mut Vec<u8>, code: u16, reason: &str) {
    let message = Disconnect { code: code.into(), reason: reason.to_owned() };
    let len = message.encoded_len();
    open(out, 0, field::PUSH, bytes_len(len));
    key(out, field::PUSH_DISCONNECT, len);
    message.encode(out).expect("a Vec takes all");
}

fn bare_publication(out: &mut Vec<u8>, offset: u64, change: &[u8]) {
    bytes(out, field::PUBLICATION_DATA, change);
    number(out, field::PUBLICATION_OFFSET, offset);
}

fn rpc(out: &mut Vec<u8>, id: u32, data: &[u8]) {
    out.reserve_exact(data.len() + HEAD_MAX);
    open(out, id, field::RPC, bytes_len(data.len()));
    bytes(out, field::RPC_DATA, data);
}

fn message(out: &mut Vec<u8>, id: u32, field: u8, message: &impl prost::Message) {
    open(out, id, field, message.encoded_len());
    message.encode(out).expect("a Vec takes all");
}

/// Begins a reply whose field `field` takes `len` bytes, which the caller appends. A push has the id 0.
fn open(out: &mut Vec<u8>, id: u32, field: u8, len: usize) {
    let id_len = if id == 0 { 0 } else { number_len(id.into()) };
    encode_varint((id_len + bytes_len(len)) as u64, out);
    if id != 0 {
        number(out, field::REPLY_ID, id.into());
    }
    key(out, field, len);
}

/// Begins a field that holds `len` bytes.
fn key(out: &mut Vec<u8>, field: u8, len: usize) {
    out.push(field);
    encode_varint(len as u64, out);
}

fn bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    key(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

fn number(out: &mut Vec<u8>, field: u8, number: u64) {
    out.push(field);
    encode_varint(number, out);
}

/// How many bytes a field takes that holds `len` bytes.
fn bytes_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

/// How many bytes a field takes that holds a number.
fn number_len(number: u64) -> usize {
    1 + encoded_len_varint(number)
}
