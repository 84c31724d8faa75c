//! What the Archive brings to an inbox: news, the adds of a follow, the content of a rebuild, and what lies below the
//! floor.

use async_trait::async_trait;

use crate::change::DisplayKey;
use crate::error::Result;
use crate::inboxes::KEEP;
use crate::{DirectSeq, Entry, FeedId, Generation, InboxKey, OutboxSeq, Progress, PullSeq, UserNo, Watermarks};

/// The most adds that a follow step brings. If one edge alone brings more, because a lot was published since the edge
/// was set on, the inbox is left to its next rebuild, which brings the newest adds.
pub const EDGE_ADDS_MAX: usize = 2 * KEEP;

/// The most edges that one follow step may name.
pub const EDGES_MAX: usize = 256;

/// A follow edge as fan-out sees it: what [`effective_edge`](crate::graph::effective_edge) computes from what is
/// stored. An edge that never existed is `Edge::default()`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edge {
    /// Whether the reader follows the author and no shield is up between them.
    pub on: bool,
    /// A number that grows with every change of `on`, either way; 0 if it never changed.
    pub generation: Generation,
    /// The author's outbox head when the edge was last set on.
    pub from: OutboxSeq,
}

/// An `add` that a feed shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedAdd {
    /// The author of the item.
    pub author: UserNo,
    /// The sequence number of the item's `add` in the author's outbox; 0 if the item is addressed to the reader.
    pub outbox_seq: OutboxSeq,
    /// The generation of the edge by which the reader sees the item; 0 if the item is addressed to the reader.
    pub generation: Generation,
    /// The item and its rank.
    pub key: DisplayKey,
}

/// What no push brings and an inbox has not taken in yet. Read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// First what the reader pulls, ascending by pull number, then what is addressed to the reader, ascending by direct
    /// number.
    pub entries: Vec<Entry>,
    /// How far `entries` is complete: up to these numbers there is nothing else.
    pub upto: Watermarks,
    /// The newest edge generation in the snapshot, as in [`Recipient::counter`](super::Recipient::counter).
    pub counter: Generation,
    /// Whether all outstanding records that are addressed to the reader were imported: then nobody is told of them.
    pub quiet: bool,
    /// If the reader has a device registered for push notifications: up to which number of what is addressed to the
    /// reader it was [noted](super::PushNotices::note).
    pub noted: Option<DirectSeq>,
}

/// What a follow or unfollow step brings to one inbox for one edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeState {
    /// The edge in the snapshot.
    pub edge: Edge,
    /// The adds up to the cut, in outbox order; none if the edge is off. If there are more than [`EDGE_ADDS_MAX`], the
    /// list has only some of them, but still more than [`EDGE_ADDS_MAX`], so that the caller notices.
    pub adds: Vec<FeedAdd>,
    /// The greatest key that the edge shows and that is not among `adds`, because the edge shows a long past. Not to be
    /// relied on if there are more adds than [`EDGE_ADDS_MAX`].
    pub floor: Option<DisplayKey>,
    /// Whether all outstanding changes of the edge were imported: then nobody is told of them.
    pub quiet: bool,
}

/// Edges of one reader, for each of the inboxes that were asked for. Read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeStates {
    /// The first of the edges that were asked for, in that order: as many as show at most [`EDGE_ADDS_MAX`] adds in
    /// each inbox together, and at least one.
    pub edges: Vec<Edge>,
    /// All feeds, as [`Names::feeds`](super::Names::feeds) answers. The inbox of a feed that is missing here is
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
    /// The greatest key that belongs to the feed and had no room in `adds`; `None` if all keys had room.
    pub floor: Option<DisplayKey>,
    /// How far the snapshot goes for what no push brings.
    pub taken: Watermarks,
    /// The authors whose outbox head is beyond the progress that was given, with that head; only authors to whom the
    /// reader has an edge of its own.
    pub ahead: Vec<(UserNo, OutboxSeq)>,
}

/// Which part of a feed is read, in display order from the newest down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    /// Only adds strictly below this key; all if `None`.
    pub before: Option<DisplayKey>,
    /// Only adds of at least this rank; all if `None`.
    pub least_rank: Option<i64>,
    /// At most this many adds.
    pub limit: usize,
}

impl Below {
    /// The newest `limit` adds.
    pub fn newest(limit: usize) -> Self {
        Self { before: None, least_rank: None, limit }
    }
}

/// Reads what a reader's feed holds, for the reader's inbox.
#[async_trait]
pub trait Content: Send + Sync + 'static {
    /// Every author whom the reader follows.
    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>>;

    /// What a follow step brings of the first of `edges` to the reader's inboxes of the feeds in `pulled`. Each of
    /// `edges` is an author and how far push had come; each of `pulled` is a feed and how far its inbox had pulled. Of
    /// the author's adds to that feed, a step brings the newest `backfill` from before the follow, without those
    /// deleted since; and the living adds from after the follow that push (by progress) or pull (by number) has passed
    /// already. Of an edge that shows all adds from a place in the past on, a step brings the newest `backfill` of
    /// these adds. The whole rule is [`rules::shown`](crate::rules::shown), and then
    /// [`rules::brought`](crate::rules::brought).
    async fn edge_states(
        &self,
        reader: UserNo,
        edges: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates>;

    /// What no push brings and the inbox has not taken in. First the records of its feed with route pull and a number
    /// beyond `after.pull`, of authors whose edge is on, beyond the edge's `from`. Then what is addressed to the reader
    /// in this feed beyond `after.direct`. The answer has at most about `limit` entries; `upto` says how far they are
    /// complete. Fewer than `limit` means that these are all. If `after` is beyond all there is, `upto` says where that
    /// ends.
    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News>;

    /// The content of a rebuilt inbox: what every followed author's edge [shows](crate::rules::shown), without any cut,
    /// and what is addressed to the reader in this feed; of all these the newest `limit` in display order. `progress`
    /// says how far push had come, for [`FeedState::ahead`]; for an author who is not in it, push counts as not begun.
    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState>;

    /// A part of what the inbox's feed holds, newest first: what the edges [show](crate::rules::shown) without any cut,
    /// and what is addressed to the reader. For pages at or below an inbox's floor.
    async fn feed_below(&self, key: InboxKey, below: Below, backfill: usize) -> Result<Vec<FeedAdd>>;
}
