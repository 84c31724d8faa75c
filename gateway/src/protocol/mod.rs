//! The client protocol: a profile of Centrifuge v2, in JSON.
//!
//! ```text
//!   text frame ──▶ command       what a device asks for, several commands per frame
//!   reply, push ──▶ text frame   what a device gets; catch-up and live look the same
//!   codes                        the numbers that a client acts on
//! ```
//!
//! No other module of this crate knows how a message is written, so that a second wire format would be added here.

mod codes;
mod command;
pub(crate) mod one_line;
pub(crate) mod page_json;
pub(crate) mod push;
pub(crate) mod reply;
#[cfg(test)]
mod reply_tests;

pub use codes::Close;
pub(crate) use codes::{ErrorCode, Refusal};
pub use command::Deliver;
pub(crate) use command::{Command, Connect, From, History, Malformed, Message, PageAsk, Subscribe, Verb, decode};
pub use reply::Opened;
pub(crate) use reply::{Connected, History as HistoryReply, Large, Presence, PresenceInfo, Refreshed, Reply};
