//! Follow edges, on or off, as their reader holds them. One that was on once is never removed: its
//! generation must only grow.

use feedgate_common::archive::Edge;
use feedgate_common::{Generation, Millis, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// By reader, then author.
    Edges: b'e', Archive, (UserNo, UserNo) => EdgeRow
}

/// An edge, and since when its change is outstanding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EdgeRow {
    pub(crate) on: bool,
    pub(crate) generation: Generation,
    pub(crate) from: OutboxSeq,
    /// When the oldest change that is not taken in was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
}

fields!(EdgeRow { on, generation, from, due });

impl EdgeRow {
    pub(crate) fn edge(&self) -> Edge {
        Edge { on: self.on, generation: self.generation, from: self.from }
    }
}
