//! What the Archive brings to an inbox: news, the adds of a follow, and the content of a rebuild.

use super::Edge;
use crate::change::DisplayKey;
use crate::inboxes::KEEP;
use crate::{Entry, FeedId, Generation, OutboxSeq, UserNo, Watermarks};

/// An `add` that a feed shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedAdd {
    /// The author of the item.
    pub author: UserNo,
    /// The sequence number of its `add` in the author's outbox; 0 if it is addressed to the reader.
    pub outbox_seq: OutboxSeq,
    /// The generation of the edge under which the reader sees it; 0 if it is addressed to the reader.
    pub generation: Generation,
    /// The item and its rank.
    pub key: DisplayKey,
}

/// What no push brings and an inbox has not taken in yet. Read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// First what the reader pulls, by its numbers, then what is addressed to the reader, by its own.
    pub entries: Vec<Entry>,
    /// How far `entries` is complete: up to here there is nothing else.
    pub upto: Watermarks,
    /// The newest edge generation in the snapshot, as in [`Recipient::counter`](super::Recipient::counter).
    pub counter: Generation,
    /// Whether all that is outstanding of what is addressed to the reader was imported: then nobody is told of it.
    pub quiet: bool,
}

/// The most adds that a follow step brings. An edge that alone shows more, for example after an import, leaves the
/// inbox to its next rebuild, which brings the newest of them.
pub const EDGE_ADDS_MAX: usize = 2 * KEEP;

/// The most edges that one follow step may name.
pub const EDGES_MAX: usize = 256;

/// What a follow or unfollow step brings to one inbox for one edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeState {
    /// The edge in the snapshot.
    pub edge: Edge,
    /// The adds up to the cut, in outbox order; none if the edge is off. If there are more than [`EDGE_ADDS_MAX`], only
    /// the first of them, one more than that number.
    pub adds: Vec<FeedAdd>,
    /// Whether all that is outstanding of the edge was imported: then nobody is told of it.
    pub quiet: bool,
}

/// Edges of one reader, for each of the inboxes that were asked for. Read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeStates {
    /// The first of the edges that were asked for, in that order: as many as show at most [`EDGE_ADDS_MAX`] adds in
    /// each inbox together, and at least one.
    pub edges: Vec<Edge>,
    /// All feeds, as [`Archive::feeds`](super::Archive::feeds) answers. The inbox of a feed that is missing here is
    /// built later, from a newer snapshot.
    pub feeds: Vec<FeedId>,
    /// For each inbox in the order asked: what a step brings for each of `edges`.
    pub states: Vec<Vec<EdgeState>>,
}

/// The content of a rebuilt inbox. Read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedState {
    /// The reader's edge counter in the snapshot.
    pub built_at: Generation,
    /// The newest adds, oldest first; those of one author in outbox order.
    pub adds: Vec<FeedAdd>,
    /// The greatest key that belongs to the feed and had no room; `None` if all had.
    pub floor: Option<DisplayKey>,
    /// How far the snapshot goes for what no push brings.
    pub taken: Watermarks,
    /// The authors whose outbox head is beyond the progress that was given, with that head; only authors to whom the
    /// reader has an edge of its own.
    pub ahead: Vec<(UserNo, OutboxSeq)>,
}
