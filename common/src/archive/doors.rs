//! What the doors of an inbox bring: news, a follow, a rebuild.

use super::Edge;
use crate::change::DisplayKey;
use crate::inboxes::KEEP;
use crate::{Entry, FeedId, Generation, OutboxSeq, UserNo, Watermarks};

/// An `add` that a feed shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedAdd {
    /// Whose item.
    pub author: UserNo,
    /// Where its `add` stands in the author's outbox; 0 if it is addressed to the reader.
    pub outbox_seq: OutboxSeq,
    /// The edge's generation under which the reader sees it; 0 if it is addressed to the reader.
    pub generation: Generation,
    /// Item and rank.
    pub key: DisplayKey,
}

/// What an inbox has not taken in yet and no push brings, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What readers pull, in the order of its numbers, then what is addressed to the reader, in the order of its.
    pub entries: Vec<Entry>,
    /// What `entries` covers: there is nothing else up to here.
    pub upto: Watermarks,
    /// As [`Recipient::counter`](super::Recipient::counter).
    pub counter: Generation,
    /// All that is outstanding of what is addressed to the reader is history: nobody is told of it.
    pub quiet: bool,
}

/// The most adds that a follow step brings. An edge that alone shows more, as one that was imported from far back may, leaves
/// the inbox to its next rebuild, which brings the newest of it.
pub const EDGE_ADDS_MAX: usize = 2 * KEEP;

/// The most edges that a follow step brings.
pub const EDGES_MAX: usize = 256;

/// What a follow or unfollow step brings to an inbox: one edge, and the adds it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeState {
    /// The edge now.
    pub edge: Edge,
    /// The adds up to the cut, in outbox order; empty if the edge is off. Of more than [`EDGE_ADDS_MAX`] the first, and one
    /// more than that.
    pub adds: Vec<FeedAdd>,
    /// All that is outstanding of the edge is history: nobody is told of it.
    pub quiet: bool,
}

/// Edges of one reader in each of the inboxes that were asked for, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeStates {
    /// The first of the edges that were asked for, in that order, as they are now: as many as show [`EDGE_ADDS_MAX`] adds
    /// together in each inbox, and at least one.
    pub edges: Vec<Edge>,
    /// As [`Archive::feeds`](super::Archive::feeds): the inbox of a feed that is not among them is built later, from no less
    /// than this.
    pub feeds: Vec<FeedId>,
    /// For each inbox in the order asked: what a step brings of each of `edges`.
    pub states: Vec<Vec<EdgeState>>,
}

/// Everything a rebuilt inbox holds, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedState {
    /// The reader's edge counter in the snapshot.
    pub built_at: Generation,
    /// The newest adds, oldest first; each author's in outbox order.
    pub adds: Vec<FeedAdd>,
    /// The greatest key that belongs to the feed but did not fit.
    pub floor: Option<DisplayKey>,
    /// How far the snapshot goes for what no push brings.
    pub taken: Watermarks,
    /// Authors with an edge of the reader's own whose outbox head is beyond the progress that was given, and that head.
    pub ahead: Vec<(UserNo, OutboxSeq)>,
}
