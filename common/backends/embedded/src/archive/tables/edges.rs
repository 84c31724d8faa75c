//! What is stored of a reader and an author. A row is never removed: its generation must only grow, and without a row a
//! reader follows an author whom everyone follows.

use feedgate_common::archive::Edge;
use feedgate_common::graph::{Shields, effective_edge};
use feedgate_common::{Generation, Millis, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// The edges by reader, then author.
    Edges: b'e', Archive, (UserNo, UserNo) => EdgeRow
}

/// The reader's follow, the shields against it, and the edge that results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EdgeRow {
    pub(crate) follows: bool,
    /// The generation of the last change of the resulting edge.
    pub(crate) generation: Generation,
    /// The head of the outbox when the edge was last switched on.
    pub(crate) from: OutboxSeq,
    /// The end of the records from before the follow, of which only the newest are shown. It is `from`, or less if the
    /// follow was imported. Only a follow step reads it: there may be records between the two that push or pull still
    /// brings.
    pub(crate) past: OutboxSeq,
    /// When the oldest change that is not yet in the inboxes was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    pub(crate) shields: Shields,
    /// The place of the follow in the lists; 0 if the reader does not follow.
    pub(crate) listed: u64,
    /// Whether all changes that are not yet in the inboxes were imported: then nobody is told of them.
    pub(crate) quiet: bool,
}

impl EdgeRow {
    /// The edge that a missing row means for an author whom everyone follows since the outbox head `since`.
    pub(crate) fn of_everyone(since: OutboxSeq) -> Self {
        Self { follows: true, from: since, past: since, ..Self::default() }
    }

    pub(crate) fn edge(&self) -> Edge {
        effective_edge(Some((self.follows, self.shields, self.generation, self.from)), None)
    }
}

fields!(EdgeRow { follows, generation, from, past, due, shields, listed, quiet });
