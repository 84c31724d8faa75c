//! How messages are written on one connection: its upgrade has chosen the format by the name of a subprotocol.

use super::codes::Refusal;
use super::reply::Reply;
use super::{json, protobuf};

/// A format of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Objects in text frames, a line each.
    Json,
    /// Messages in binary frames, each after its length.
    Protobuf,
}

impl Format {
    /// The format that a subprotocol of this name asks for.
    pub(crate) fn of(subprotocol: &str) -> Option<Self> {
        [Self::Json, Self::Protobuf].into_iter().find(|format| format.subprotocol() == subprotocol)
    }

    /// The name of the subprotocol that asks for this format.
    pub(crate) const fn subprotocol(self) -> &'static str {
        match self {
            Self::Json => "centrifuge-json",
            Self::Protobuf => "centrifuge-protobuf",
        }
    }

    /// What stands between two pushes of one frame.
    pub(crate) fn between_pushes(self) -> &'static [u8] {
        match self {
            Self::Json => b"\n",
            Self::Protobuf => b"",
        }
    }

    /// What stands between two publications of one history.
    pub(crate) fn between_publications(self) -> &'static [u8] {
        match self {
            Self::Json => b",",
            Self::Protobuf => b"",
        }
    }

    /// What the gateway sends as a ping, and what answers it.
    pub(crate) fn ping(self) -> &'static [u8] {
        match self {
            Self::Json => json::PING,
            Self::Protobuf => protobuf::PING,
        }
    }

    /// Appends the reply to the command `id`.
    pub(crate) fn result(self, out: &mut Vec<u8>, id: u32, reply: &Reply) {
        match self {
            Self::Json => json::result(out, id, reply),
            Self::Protobuf => protobuf::result(out, id, reply),
        }
    }

    /// Appends the refusal of the command `id`.
    pub(crate) fn error(self, out: &mut Vec<u8>, id: u32, refusal: &Refusal) {
        match self {
            Self::Json => json::error(out, id, refusal),
            Self::Protobuf => protobuf::error(out, id, refusal),
        }
    }

    /// Appends a publication of a history: `change`, which is JSON, at its offset.
    pub(crate) fn publication(self, out: &mut Vec<u8>, offset: u64, change: &[u8]) {
        match self {
            Self::Json => json::publication(out, offset, change),
            Self::Protobuf => protobuf::publication(out, offset, change),
        }
    }

    /// Appends a push of one publication in the feed that `channel` names.
    pub(crate) fn push(self, out: &mut Vec<u8>, channel: &str, offset: u64, change: &[u8]) {
        match self {
            Self::Json => json::push(out, channel, offset, change),
            Self::Protobuf => protobuf::push(out, channel, offset, change),
        }
    }

    /// Appends the push of notify mode, which says that the log's last offset is `head`.
    pub(crate) fn behind(self, out: &mut Vec<u8>, channel: &str, head: u64) {
        self.push(out, channel, head, br#"{"op":"behind"}"#);
    }
}
