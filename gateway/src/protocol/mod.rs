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
mod format;
pub(crate) mod json;
pub(crate) mod one_line;
pub(crate) mod page_json;
pub(crate) mod protobuf;
pub(crate) mod reply;
#[cfg(test)]
mod reply_tests;
mod request;

pub use codes::Close;
pub(crate) use codes::{ErrorCode, Refusal};
pub use command::Deliver;
pub(crate) use command::{Command, Connect, From, History, Malformed, Message, PageAsk, Subscribe, Verb};
pub(crate) use format::Format;
pub use reply::Opened;
pub(crate) use reply::{Connected, History as HistoryReply, Large, Presence, PresenceInfo, Refreshed, Reply};
