//! The replies to a device's commands, the same in every [format](super::Format).
//!
//! Each struct that derives `Serialize` and `prost::Message` is a message of `client.proto`: serde writes its fields by
//! their names as JSON, prost by their tags as Protobuf. A result is always written, even if it is empty, because some
//! SDKs look into it; and no field that an SDK looks at is ever empty or zero, because Protobuf leaves such fields out.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use feedgate_common::feed::Sight;
use feedgate_common::{Epoch, Position};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::codes::{ErrorCode, Refusal};
use super::sight_json::SightAt;
use crate::limits::budget::Reservation;

/// The result of a command, by its verb.
#[derive(Debug)]
pub(crate) enum Reply {
    Connect(Connected),
    /// How a subscription began; what was seen and is unread, if the device wants to know it; and the number that
    /// stands for the channel in pushes.
    Subscribe(Opened, Option<Sight>, Option<NonZeroU32>),
    /// How a subscription to an item began.
    Watch(Standing),
    Unsubscribe,
    /// The result of `rpc ack`.
    Acked,
    /// The result of `rpc seen`.
    Seen(Sight),
    /// The result of `rpc page`.
    Page(Large),
    History(History),
    Presence(BTreeMap<String, Presence>),
    PresenceStats(usize),
    Refresh(Refreshed),
    Pong,
}

/// The result of `connect`: `ConnectResult` of the schema.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(crate) struct Connected {
    #[prost(string, tag = "1")]
    pub(crate) client: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    /// Seconds between pings, at least 1.
    #[prost(uint32, tag = "7")]
    pub(crate) ping: u32,
    /// Whether pings are to be answered.
    #[prost(bool, tag = "8")]
    pub(crate) pong: bool,
    #[prost(bool, tag = "3")]
    pub(crate) expires: bool,
    /// Seconds until the token expires, at least 1.
    #[prost(uint32, tag = "4")]
    pub(crate) ttl: u32,
    #[prost(string, tag = "9")]
    pub(crate) session: String,
    #[prost(string, tag = "10")]
    pub(crate) node: String,
}

/// The result of `subscribe`: how the subscription began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The position from which the subscription starts.
    pub position: Position,
    /// Whether the device asked to recover from a position.
    pub was_recovering: bool,
    /// Whether the subscription was recovered: then no change is missing (I9).
    pub recovered: bool,
}

/// The result of a `subscribe` to an item: how the item stands for the user, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) data: Vec<u8>,
}

/// The result of `refresh`: `RefreshResult` of the schema.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(crate) struct Refreshed {
    #[prost(string, tag = "1")]
    pub(crate) client: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(bool, tag = "3")]
    pub(crate) expires: bool,
    /// Seconds until the token expires, at least 1.
    #[prost(uint32, tag = "4")]
    pub(crate) ttl: u32,
}

/// The result of `history`.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) epoch: Epoch,
    pub(crate) offset: u64,
    /// The publications, in the format of the connection.
    pub(crate) publications: Large,
}

/// A part of a reply that may be large, and the bytes of memory that are counted for it.
#[derive(Debug)]
pub(crate) struct Large {
    pub(crate) bytes: Vec<u8>,
    pub(crate) held: Option<Reservation>,
}

/// One device of the user, as `presence` shows it: `ClientInfo` of the schema.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(crate) struct Presence {
    #[prost(string, tag = "2")]
    pub(crate) client: String,
    #[prost(string, tag = "1")]
    pub(crate) user: String,
    /// A [`PresenceInfo`] as JSON.
    #[prost(bytes = "vec", tag = "3")]
    #[serde(serialize_with = "as_json")]
    pub(crate) conn_info: Vec<u8>,
}

/// What this server knows of the device.
#[derive(Debug, Serialize)]
pub(crate) struct PresenceInfo {
    pub(crate) device: String,
    pub(crate) node: String,
    pub(crate) since: i64,
}

/// `SubscribeResult` of the schema.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct Subscribed {
    #[prost(bool, tag = "3")]
    recoverable: bool,
    /// One SDK advances recovered positions only if this is true.
    #[prost(bool, tag = "10")]
    positioned: bool,
    #[prost(string, tag = "6")]
    epoch: String,
    #[prost(uint64, tag = "9")]
    offset: u64,
    #[prost(bool, tag = "12")]
    was_recovering: bool,
    #[prost(bool, tag = "8")]
    recovered: bool,
    /// The position once more, as JSON, and what was seen: some SDKs show an app no other part of this reply.
    #[prost(bytes = "vec", tag = "11")]
    #[serde(serialize_with = "as_json")]
    data: Vec<u8>,
    /// The number that stands for the channel in pushes, if the device has offered that.
    #[prost(int64, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
}

/// `PresenceResult` of the schema.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct Present {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) presence: BTreeMap<String, Presence>,
}

/// `PresenceStatsResult` of the schema.
#[derive(Clone, Copy, PartialEq, prost::Message, Serialize)]
pub(super) struct Stats {
    #[prost(uint32, tag = "1")]
    num_clients: u32,
    #[prost(uint32, tag = "2")]
    num_users: u32,
}

/// `Error` of the schema.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct Wrong {
    #[prost(uint32, tag = "1")]
    code: u32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    temporary: bool,
}

/// A result without fields.
#[derive(Clone, Copy, PartialEq, prost::Message, Serialize)]
pub(super) struct Empty {}

impl Reply {
    /// Takes out the bytes of memory that are counted for the reply, if it may be large.
    pub(crate) fn take_held(&mut self) -> Option<Reservation> {
        match self {
            Self::Page(large) | Self::History(History { publications: large, .. }) => large.held.take(),
            _ => None,
        }
    }
}

impl PresenceInfo {
    /// Writes the description of the device as JSON.
    pub(crate) fn json(&self) -> Vec<u8> {
        to_json(self)
    }
}

impl Stats {
    /// The counts for `devices` devices, all of one user.
    pub(super) fn of(devices: usize) -> Self {
        Self { num_clients: u32::try_from(devices).unwrap_or(u32::MAX), num_users: u32::from(devices > 0) }
    }
}

impl Subscribed {
    /// `number` stands for the channel in pushes, if there is one.
    pub(super) fn of(opened: &Opened, sight: Option<Sight>, number: Option<NonZeroU32>) -> Self {
        #[derive(Serialize)]
        struct Data {
            #[serde(flatten)]
            position: Position,
            #[serde(flatten)]
            sight: Option<SightAt>,
        }
        let data = Data { position: opened.position, sight: sight.map(SightAt::from) };
        Self {
            recoverable: true,
            positioned: true,
            epoch: opened.position.epoch.to_string(),
            offset: opened.position.offset,
            was_recovering: opened.was_recovering,
            recovered: opened.recovered,
            data: to_json(&data),
            id: number.map(|number| number.get().into()),
        }
    }
}

impl From<&Standing> for Subscribed {
    /// A subscription to an item has no log: there is no position in it, and nothing to recover.
    fn from(standing: &Standing) -> Self {
        Self { data: standing.data.clone(), ..Self::default() }
    }
}

impl From<&Refusal> for Wrong {
    fn from(Refusal { code, message }: &Refusal) -> Self {
        Self { code: ErrorCode::code(*code).into(), message: message.to_string(), temporary: code.temporary() }
    }
}

pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our own values serialize")
}

/// Writes JSON that is kept as text.
fn as_json<S: Serializer>(json: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_slice(json).map_err(serde::ser::Error::custom)?;
    raw.serialize(serializer)
}
