//! Lines of lists of follows, as they are shown and as they are exported.

use crate::graph::Shields;
use crate::{Generation, Millis, OutboxSeq, UserId, UserNo};

/// One line of a list of followers, followees or shields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// The user on the other side.
    pub user: UserId,
    /// When the edge was set on or the shield went up, in Unix ms.
    pub since: Millis,
    /// The cursor after which the list goes on behind this line. Opaque; it descends along the list.
    pub cursor: u64,
}

/// What is stored of one edge, for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The author of the edge.
    pub author: UserNo,
    /// Whether the reader follows, whatever shields are up.
    pub follows: bool,
    /// The shields that are up.
    pub shields: Shields,
    /// The generation, as in [`Edge::generation`](super::Edge::generation); 0 if the reader follows only because
    /// everyone does.
    pub generation: Generation,
    /// The end of the records from before the follow, of which only the newest are shown.
    pub past: OutboxSeq,
    /// When the follow began, in Unix ms; 0 if the reader does not follow.
    pub since: Millis,
}
