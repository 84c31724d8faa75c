//! The client protocol: a profile of Centrifuge v2, as JSON or as Protobuf.
//!
//! ```text
//!   text frame ───▶ json ─────┐                                     ┌──▶ json ─────▶ text frame
//!                             ├─▶ request ──▶ command      reply ───┤
//!   binary frame ─▶ protobuf ─┘   what a device asks for   and push └──▶ protobuf ─▶ binary frame
//!
//!   format     which of the two a connection speaks        codes      the numbers that a client acts on
//! ```
//!
//! No other module of this crate knows how a message is written. Catch-up and live pushes look the same.

mod codes;
mod command;
pub(crate) mod emulation;
mod format;
pub(crate) mod json;
mod label;
pub(crate) mod one_line;
mod one_way;
pub(crate) mod page_json;
pub(crate) mod protobuf;
pub(crate) mod reply;
#[cfg(test)]
mod reply_tests;
mod request;
pub(crate) mod sight_json;

pub use codes::Close;
pub(crate) use codes::{ErrorCode, Refusal, Unsubscribed};
pub use command::Deliver;
pub(crate) use command::{Command, Connect, History, Malformed, Message, PageAsk, StartFrom, Subscribe, Verb};
pub(crate) use format::Format;
pub(crate) use label::{Label, number};
pub use reply::Opened;
pub(crate) use reply::{Connected, History as HistoryReply, Large, Presence, PresenceInfo, Refreshed, Reply, Standing};
pub(crate) use request::ITEM_CHANNEL;
