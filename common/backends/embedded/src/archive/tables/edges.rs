//! What is held of a reader and an author, as their reader holds it. A row is never removed: its generation must
//! only grow, and for an author whom everyone follows its absence means a follow.

use feedgate_common::archive::Edge;
use feedgate_common::graph::{Shields, effective_edge};
use feedgate_common::{Generation, Millis, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// By reader, then author.
    Edges: b'e', Archive, (UserNo, UserNo) => EdgeRow
}

/// The reader's follow, what stands against it, and the edge that came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EdgeRow {
    pub(crate) follows: bool,
    /// Of the last change of the effect.
    pub(crate) generation: Generation,
    /// The outbox head when the edge last came into effect.
    pub(crate) from: OutboxSeq,
    /// Where what came before the follow ends, of which only the newest are shown: `from`, or below it if the follow was
    /// imported. No door but the follow's goes by it: records that others have in hand may lie between the two.
    pub(crate) past: OutboxSeq,
    /// When the oldest change that is not taken in was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    pub(crate) shields: Shields,
    /// Where the follow stands in the lists; 0 if the reader does not follow.
    pub(crate) listed: u64,
    /// All changes of the effect that are not taken in were imported: nobody is told of them.
    pub(crate) quiet: bool,
}

impl EdgeRow {
    /// What the absence of a row means for an author whom everyone follows since then.
    pub(crate) fn of_everyone(since: OutboxSeq) -> Self {
        Self { follows: true, from: since, past: since, ..Self::default() }
    }

    pub(crate) fn edge(&self) -> Edge {
        effective_edge(Some((self.follows, self.shields, self.generation, self.from)), None)
    }
}

fields!(EdgeRow { follows, generation, from, past, due, shields, listed, quiet });
