//! What stands around an item: state that is joined to it when it is shown, and that no log ever holds.
//!
//! ```text
//!   a reaction ──▶ state of its item, in one transaction         no record, no event, no fan-out
//!   a page ──▶ keys from the log ──▶ items ──▶ originals(refs, viewer), one read ──▶ reposts with their originals
//!                                         └──▶ around(items, onlooker), one read ──▶ items with counts and own
//!   a comment ──▶ state of its item too, in the order of commits ──▶ comments(item, viewer), page by page
//! ```
//!
//! Invariants:
//! - At rest a count is the size of its set (S1): set and count change in one transaction. This holds for comments
//!   too, and for reposts, which the transaction counts that makes or deletes the repost.
//! - What is [own](Around::own) is read from the store each time, and never from a cache of another viewer (S2).

mod comment;
mod onlooker;
mod original;
mod reach;
mod reaction;
mod sight;

pub use comment::{
    COMMENT_MAX_BYTES, COMMENTS_LOOKED_AT, Comment, CommentOrder, CommentPage, CommentPlace, CommentRow, CommentRows,
    CommentWrite, Commented, NewComment, PastComment, Talk, Uncommented, comment_id, place_behind, stands,
};
pub use onlooker::{Onlooker, Tie, Visible, shows_comment, shows_reaction};
pub use original::{Original, Terms, Viewer, originals_of, shows_original};
pub use reach::{Reach, sees};
pub use reaction::{
    COMMENTS, KIND_MAX_BYTES, KINDS_MAX, Place, REPOSTS, Reacted, Reaction, ReactionKind, Unreacted, may_have_kind,
    newest_of, place_after,
};
pub use sight::{brought_to, opens, seen_by, who_sees};

/// What stands around one item, as one viewer sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    /// How many users have reacted with each kind, of those whose reactions the viewer sees; ascending by kind, without
    /// kinds that none of them has given.
    pub counts: Vec<(ReactionKind, u64)>,
    /// The kinds with which the viewer has reacted, ascending.
    pub own: Vec<ReactionKind>,
    /// How many comments the item has. Placeholders of deleted ones are not counted.
    pub comments: u64,
    /// How many living items repost the item, also those that the viewer may not see.
    pub reposts: u64,
}

impl Around {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.named().next().is_none()
    }

    /// All counts by name: of reactions by kind, then those of comments and of reposts; without those that are zero.
    pub fn named(&self) -> impl Iterator<Item = (&str, u64)> {
        let kinds = self.counts.iter().map(|(kind, count)| (kind.as_str(), *count));
        kinds.chain([(COMMENTS, self.comments), (REPOSTS, self.reposts)]).filter(|(_, count)| *count > 0)
    }

    /// What may be shown to a viewer who sees the comments and reactions of only some users: not how many comments and
    /// reposts there are, since the numbers would tell of those that are not shown.
    #[must_use]
    pub fn of_some(self) -> Self {
        Self { comments: 0, reposts: 0, ..self }
    }
}
