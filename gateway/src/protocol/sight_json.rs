//! What a reader has seen of a feed, as JSON.
//!
//! ```text
//!   by HTTP, rpc seen   {"seen":{"epoch":"7","offset":9} | null, "unread":3, "position":{"epoch":"7","offset":12}}
//!   on a channel        {…,                                       "unread":3, "head":12}
//! ```
//!
//! `position` is the end of the log when `unread` was counted. On a channel the epoch is that of the subscription.

use feedgate_common::Position;
use feedgate_common::feed::Sight;
use serde::Serialize;

/// What is seen, how much is unread, and the position of the log at which both were counted.
#[derive(Debug, Serialize)]
pub(crate) struct SightJson {
    seen: Option<Position>,
    unread: usize,
    position: Position,
}

impl From<Sight> for SightJson {
    fn from(Sight { seen, unread, head }: Sight) -> Self {
        Self { seen, unread, position: head }
    }
}

/// What is seen and unread, on a channel whose epoch the device knows.
#[derive(Debug, Serialize)]
pub(super) struct SightAt {
    seen: Option<Position>,
    unread: usize,
    head: u64,
}

impl From<Sight> for SightAt {
    fn from(Sight { seen, unread, head }: Sight) -> Self {
        Self { seen, unread, head: head.offset }
    }
}

/// The data of a push to a device that wants to know how much is unread.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Told {
    /// More was seen, by whichever device.
    Seen(SightAt),
    /// The log has grown, and so much is unread.
    Behind { unread: usize },
}
