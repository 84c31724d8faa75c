//! What is stored of a reader and an author. A row is never removed: its generation must only grow, and without a row a
//! reader follows an author whom everyone follows.

use feedgate_common::accept::EdgeRow as Held;
use feedgate_common::{Millis, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// The edges by reader, then author.
    Edges: b'e', Archive, (UserNo, UserNo) => EdgeRow
}

/// The reader's follow, the shields against it, and the edge that results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EdgeRow {
    /// What decisions need of it.
    pub(crate) held: Held,
    /// When the oldest change that is not yet in the inboxes was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// The place of the follow in the lists; 0 if the reader does not follow.
    pub(crate) listed: u64,
    /// Whether all changes that are not yet in the inboxes were imported: then nobody is told of them.
    pub(crate) quiet: bool,
}

impl EdgeRow {
    /// The edge that a missing row means for an author whom everyone follows since the outbox head `since`.
    pub(crate) fn of_everyone(since: OutboxSeq) -> Self {
        Self { held: Held { follows: true, from: since, ..Held::default() }, ..Self::default() }
    }
}

fields!(Held { follows, shields, generation, from, past });
fields!(EdgeRow { held, due, listed, quiet });
