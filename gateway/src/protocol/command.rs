//! What a device may send, with its arguments checked: the same for every [format](super::Format).
//!
//! A message that is no command at all breaks the protocol ([`Malformed`]: close 3501). A command whose contents make
//! no sense is answered with a precise [`Refusal`]. A command that waits for its turn holds a token of at most
//! [`TOKEN_MAX`] bytes and else next to nothing, however large the message was (I18).
//!
//! A channel is the name of a feed, and stands for the inbox that the token's user has in that feed; or it is `item:`
//! and an id, and stands for what is around that item.

use feedgate_common::{DeviceId, DisplayKey, FeedId, ItemId, Position};

use super::codes::Refusal;

#[cfg(test)]
mod tests;

/// The most bytes of a token that a device sends, in `connect` or in `refresh`.
pub(crate) const TOKEN_MAX: usize = 4096;

/// The message is no command. The connection is closed with 3501.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What a device has sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// The answer to our ping.
    Pong,
    /// A message that is not answered.
    Send,
    /// A command, which is done and answered.
    Command(Command),
}

/// A command, which is done and answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    /// Greater than 0; the reply carries the same number.
    pub(crate) id: u32,
    /// What the device asks for.
    pub(crate) verb: Verb,
}

/// What a device may ask for, with the arguments checked.
#[derive(Debug, PartialEq)]
pub(crate) enum Verb {
    /// Holds the refusal if its arguments are wrong. This is no [`Verb::Refused`], which is answered only after a
    /// `connect`.
    Connect(Result<Box<Connect>, Box<Refusal>>),
    Subscribe(Box<Subscribe>),
    Unsubscribe(FeedId),
    /// A subscription to what stands around an item.
    Watch(ItemId),
    /// The end of a subscription to what stands around an item.
    Unwatch(ItemId),
    Ack(FeedId, Position),
    /// The user has seen the feed up to this position. Without a position, the command asks what was seen.
    Seen(FeedId, Option<Position>),
    Page(Box<PageAsk>),
    History(Box<History>),
    Presence,
    PresenceStats,
    Refresh(Box<str>),
    Ping,
    /// A command that cannot be done: answer with this.
    Refused(Box<Refusal>),
}

/// The arguments of `connect`.
#[derive(Debug, PartialEq)]
pub(crate) struct Connect {
    pub(crate) token: String,
    /// The field `data.device_id`, if it is given.
    pub(crate) device: Option<DeviceId>,
    /// Whether the client is known to find a channel by its number in Protobuf too.
    pub(crate) reads_numbers: bool,
}

/// The arguments of `subscribe`.
#[derive(Debug, PartialEq)]
pub(crate) struct Subscribe {
    pub(crate) feed: FeedId,
    pub(crate) from: StartFrom,
    pub(crate) deliver: Deliver,
    /// Whether the device wants to know how much is unread.
    pub(crate) unread: bool,
    /// Whether to refuse with error 112 rather than start at the head.
    pub(crate) reject_unrecovered: bool,
    /// Whether pushes may have a number in place of the channel's name.
    pub(crate) numbered: bool,
}

/// What a device gets of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliver {
    /// Only that the device is behind; the device then fetches the changes by itself.
    Notify,
    /// Every change, with its item.
    Items,
}

/// The position that a device wants to start from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StartFrom {
    Head,
    /// The device's own position, with `recover:true`; `None` if the epoch that the device sent is not one of Feedgate.
    Own(Option<Position>),
    /// The position that is stored, with `data.resume:"stored"`.
    Stored,
}

/// The arguments of `rpc page`.
#[derive(Debug, PartialEq)]
pub(crate) struct PageAsk {
    pub(crate) feed: FeedId,
    pub(crate) limit: Option<u64>,
    /// The key strictly below which the page begins; `None` for the first page.
    pub(crate) before: Option<DisplayKey>,
}

/// The arguments of `history`.
#[derive(Debug, PartialEq)]
pub(crate) struct History {
    pub(crate) feed: FeedId,
    pub(crate) since: Option<Position>,
    /// The most changes to give; 0 asks only for the log's position.
    pub(crate) limit: usize,
    pub(crate) reverse: bool,
}
