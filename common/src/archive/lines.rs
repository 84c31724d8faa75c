//! Lines of lists: who follows whom, as it is shown and as it is exported.

use crate::graph::Shields;
use crate::{Generation, Millis, OutboxSeq, UserId, UserNo};

/// One line of a list of followers or followees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// The other side.
    pub user: UserId,
    /// When the edge was set on.
    pub since: Millis,
    /// Where the list goes on after this line; opaque, descending.
    pub cursor: u64,
}

/// What the store holds of one edge, for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Whose outbox.
    pub author: UserNo,
    /// Whether the reader follows, whatever the shields.
    pub follows: bool,
    /// Those that are up.
    pub shields: Shields,
    /// As [`Edge::generation`](super::Edge::generation); 0 if the reader follows as everyone does.
    pub generation: Generation,
    /// Where what came before the follow ends.
    pub past: OutboxSeq,
    /// When the follow began; 0 if the reader does not follow.
    pub since: Millis,
}
