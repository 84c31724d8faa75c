//! How messages are written on one connection. The request that opened the connection has chosen the format.

use feedgate_common::Position;
use feedgate_common::feed::Sight;

use super::codes::{Close, Refusal, Unsubscribed};
use super::label::Label;
use super::reply::{Reply, to_json};
use super::sight_json::Told;
use super::{json, one_way, protobuf};

/// A format of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Objects in text frames, a line each.
    Json,
    /// Messages in binary frames, each after its length.
    Protobuf,
    /// Objects as events, for a client that only listens.
    OneWay,
}

impl Format {
    /// The format that a subprotocol of this name asks for.
    pub(crate) fn of(subprotocol: &str) -> Option<Self> {
        [Self::Json, Self::Protobuf].into_iter().find(|format| format.subprotocol() == Some(subprotocol))
    }

    /// The name of the subprotocol that asks for this format; `None` if no WebSocket speaks it.
    pub(crate) const fn subprotocol(self) -> Option<&'static str> {
        match self {
            Self::Json => Some("centrifuge-json"),
            Self::Protobuf => Some("centrifuge-protobuf"),
            Self::OneWay => None,
        }
    }

    /// What stands between two pushes of one frame.
    pub(crate) fn between_pushes(self) -> &'static [u8] {
        match self {
            Self::Json => b"\n",
            Self::Protobuf | Self::OneWay => b"",
        }
    }

    /// What stands between two publications of one history.
    pub(crate) fn between_publications(self) -> &'static [u8] {
        match self {
            Self::Json | Self::OneWay => b",",
            Self::Protobuf => b"",
        }
    }

    /// The bytes that the gateway sends as a ping, which are also the bytes of the pong.
    pub(crate) fn ping(self) -> &'static [u8] {
        match self {
            Self::Json => json::PING,
            Self::Protobuf => protobuf::PING,
            Self::OneWay => one_way::PING,
        }
    }

    /// Appends the reply to the command `id`.
    pub(crate) fn result(self, out: &mut Vec<u8>, id: u32, reply: &Reply) {
        match self {
            Self::Json => json::result(out, id, reply),
            Self::Protobuf => protobuf::result(out, id, reply),
            Self::OneWay => one_way::result(out, reply),
        }
    }

    /// Appends the refusal of the command `id`.
    pub(crate) fn error(self, out: &mut Vec<u8>, id: u32, refusal: &Refusal) {
        match self {
            Self::Json => json::error(out, id, refusal),
            Self::Protobuf => protobuf::error(out, id, refusal),
            Self::OneWay => one_way::error(out, refusal),
        }
    }

    /// Appends a publication of a history: `change`, which is JSON, at its offset.
    pub(crate) fn publication(self, out: &mut Vec<u8>, offset: u64, change: &[u8]) {
        match self {
            Self::Json | Self::OneWay => json::publication(out, offset, change),
            Self::Protobuf => protobuf::publication(out, offset, change),
        }
    }

    /// Appends a push of one publication in the channel that `label` names. A client that only listens offers no
    /// numbers, so it gets the name.
    pub(crate) fn push(self, out: &mut Vec<u8>, label: Label<'_>, at: Position, change: &[u8]) {
        match self {
            Self::Json => json::push(out, label, at.offset, change),
            Self::Protobuf => protobuf::push(out, label, at.offset, change),
            Self::OneWay => one_way::push(out, label.name, at, change),
        }
    }

    /// Appends the push that ends a session whose transport has no close frame.
    pub(crate) fn disconnect(self, out: &mut Vec<u8>, close: Close, reason: &str) {
        match self {
            Self::Json => json::disconnect(out, close.code(), reason),
            Self::Protobuf => protobuf::disconnect(out, close.code(), reason),
            Self::OneWay => one_way::disconnect(out, close, reason),
        }
    }

    /// Appends the push of notify mode, which says that the log's last position is `head`, and how much is unread if
    /// the device wants to know it.
    pub(crate) fn behind(self, out: &mut Vec<u8>, label: Label<'_>, head: Position, unread: Option<usize>) {
        match unread {
            None => self.push(out, label, head, br#"{"op":"behind"}"#),
            Some(unread) => self.push(out, label, head, &to_json(&Told::Behind { unread })),
        }
    }

    /// Appends the push that says what the reader has seen. This is no change of the log, so the push has no offset,
    /// and SDKs do not recover from it.
    pub(crate) fn seen(self, out: &mut Vec<u8>, label: Label<'_>, sight: Sight) {
        self.aside(out, label, &to_json(&Told::Seen(sight.into())));
    }

    /// Appends a push of something around an item, which is JSON.
    pub(crate) fn news(self, out: &mut Vec<u8>, channel: &str, data: &[u8]) {
        self.aside(out, Label { name: channel, number: None }, data);
    }

    /// Appends a push of something that is no change of a log.
    fn aside(self, out: &mut Vec<u8>, label: Label<'_>, data: &[u8]) {
        match self {
            Self::Json => json::push(out, label, 0, data),
            Self::Protobuf => protobuf::push(out, label, 0, data),
            Self::OneWay => one_way::publication(out, label.name, 0, data),
        }
    }

    /// Appends the push that ends the subscription to an item.
    pub(crate) fn unsubscribed(self, out: &mut Vec<u8>, channel: &str, why: Unsubscribed) {
        let (code, reason) = (why.code(), why.text());
        match self {
            Self::Json => json::unsubscribed(out, channel, code, reason),
            Self::Protobuf => protobuf::unsubscribed(out, channel, code, reason),
            Self::OneWay => one_way::unsubscribed(out, channel, code, reason),
        }
    }
}
