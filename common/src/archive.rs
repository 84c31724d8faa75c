//! The truth: items, outboxes, follow edges, and the events that are still to be worked off.
//!
//! Invariants every home keeps:
//! - [`Archive::write`] is one transaction per call: item, outbox record and event, or edge and
//!   event, are durable together before it answers (I6).
//! - Every read sees only what is durable, and each single method reads one snapshot.
//! - An author's records are dense from 1 in commit order; nothing appears below a served head.
//! - An edge's changes take ever greater generations; `from` is the outbox head in the same
//!   transaction.
//! - Records of route pull are numbered over all authors in commit order: a read that shows one number
//!   shows every record below it.

mod doors;
mod lines;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use compact_str::CompactString;

use crate::change::{Class, DisplayKey, Record};
use crate::error::{Result, StoreError};
use crate::graph::Shield;
use crate::{
    Bucket, Cut, DirectSeq, Epoch, FeedId, Generation, InboxKey, Item, ItemId, Millis, OutboxSeq, Progress, PullSeq,
    UserId, UserNo, Watermarks,
};
pub use doors::{EDGE_ADDS_MAX, EDGES_MAX, EdgeState, EdgeStates, FeedAdd, FeedState, News};
pub use lines::{Follow, Held};
pub use write::{Audience, FOREIGN_ID_MAX_BYTES, Publish, Refused, Write, Written, may_be_foreign_id};

/// A follow edge as fan-out sees it: what [`effective_edge`](crate::graph::effective_edge) says of what
/// the Archive holds. An edge that never existed is `Edge::default()`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edge {
    /// Whether the reader follows the author and no shield is up between them.
    pub on: bool,
    /// Grows with every change of `on`, either way. 0: never changed.
    pub generation: Generation,
    /// The author's outbox head when the edge was last set on.
    pub from: OutboxSeq,
}

/// A follower as a push step needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    /// Who follows.
    pub reader: UserNo,
    /// The edge's generation.
    pub generation: Generation,
    /// Records up to here are not pushed to this reader.
    pub from: OutboxSeq,
    /// The reader's edge counter, read in the same snapshot as the edge: at least the generation of
    /// every change of the reader's edges that the snapshot shows. A home may use one counter for
    /// all readers.
    pub counter: Generation,
}

/// A stretch of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    /// In order, dense.
    pub records: Vec<Record>,
    /// The last sequence number the author has given.
    pub head: OutboxSeq,
    /// The number of the author's newest record of route pull; 0 if there never was one.
    pub last_pull: PullSeq,
    /// The newest of `records` that is not history, 0 if all are: nobody is told of those behind it.
    pub live: OutboxSeq,
}

/// An author who is pulled, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PullHead {
    /// The number of one of the author's records of route pull, the newest or the newest that is not history.
    pub pull_seq: PullSeq,
    /// Who.
    pub author: UserNo,
}

/// What is known of an author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Author {
    /// As the business asked.
    pub class: Class,
    /// How many edges are in effect.
    pub followers: u64,
    /// The last sequence number the author has given.
    pub head: OutboxSeq,
    /// The head when everyone began to follow; `None` if whoever follows has an edge.
    pub everyone_since: Option<OutboxSeq>,
}

/// Work that an accepted write left behind. It is outstanding until finished, not until relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The author's outbox has grown to at least `seq`.
    Outbox {
        /// Whose.
        author: UserNo,
        /// How far.
        seq: OutboxSeq,
        /// Of what is [finished](Archive::finish): the number under which it was gone through again; 0 if it was not.
        redo: u64,
    },
    /// An edge has changed.
    Edge {
        /// The reader.
        reader: UserNo,
        /// The author.
        author: UserNo,
        /// The change.
        generation: Generation,
    },
    /// Something up to at least `seq` was addressed to the reader.
    Direct {
        /// The reader.
        reader: UserNo,
        /// How far.
        seq: DirectSeq,
    },
}

/// A line of the list of outstanding events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// Since when it counts as outstanding; 0 or less if it was reopened.
    pub since: Millis,
    /// What is to be done.
    pub event: Event,
}

/// Counts for `/v1/stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// Users ever named.
    pub users: u64,
    /// Items that live.
    pub items: u64,
    /// Edges that are on.
    pub edges: u64,
    /// Events outstanding.
    pub events: u64,
}

/// See the module.
///
/// All methods may be cancelled; a cancelled [`Archive::write`] may or may not have happened.
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// Carries out `writes` in order, in one durable transaction, and answers each in its place. A
    /// refused one changes nothing and stops no other. `now` stamps them.
    async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>>;

    /// The numbers of users, giving new ones to names never seen. Durable when it answers.
    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>>;

    /// The numbers of users that have one.
    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>>;

    /// The numbers of named feeds, giving new ones to names never seen; none of them is [`FeedId::MAIN`]. Durable when it
    /// answers, and a name keeps its number for ever.
    async fn intern_feeds(&self, names: &[CompactString]) -> Result<Vec<FeedId>>;

    /// Every feed that a reader may have an inbox of: [`FeedId::MAIN`] first, then each that was ever
    /// [named](Self::intern_feeds), by number.
    async fn feeds(&self) -> Result<Vec<FeedId>>;

    /// The names behind numbers.
    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>>;

    /// Items that live, in the order asked; `None` for others.
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>>;

    /// The item with the backend's own key: the one that lives, else the last one deleted. `None` for any text that none
    /// has, whatever is in it.
    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>>;

    /// Records of `author` after `after`, at most `limit`.
    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox>;

    /// Living items that `author` has published to `feed`, strictly below `before` in display order, newest first.
    async fn profile(
        &self,
        author: UserNo,
        feed: FeedId,
        before: Option<DisplayKey>,
        limit: usize,
    ) -> Result<Vec<DisplayKey>>;

    /// Followers of `author` in `bucket` (of `buckets`) after `after`, by number, at most `limit`;
    /// fewer means that there are no more.
    async fn recipients(
        &self,
        author: UserNo,
        bucket: Bucket,
        buckets: u16,
        after: Option<UserNo>,
        limit: usize,
    ) -> Result<Vec<Recipient>>;

    /// Followers of `author` in all buckets, in no order, at most `limit`; fewer means that these are all.
    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>>;

    /// One edge.
    async fn edge(&self, reader: UserNo, author: UserNo) -> Result<Edge>;

    /// Every author the reader follows.
    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>>;

    /// Whom `reader` follows, newest edge first, after `cursor`.
    async fn following(&self, reader: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// Who follows `author`, newest edge first, after `cursor`.
    async fn followers(&self, author: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// Users that `user` follows and that follow `user`, newest edge of `user` first, after `cursor`.
    async fn mutual(&self, user: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// Against whom `user` has this shield up, newest first, after `cursor`.
    async fn shielded(&self, user: UserNo, shield: Shield, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// What is known of an author.
    async fn author(&self, author: UserNo) -> Result<Author>;

    /// Those of `readers` for whom the edge to `author` is in effect, in no order.
    async fn followers_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>>;

    /// Those of `authors` to whom the edge of `reader` is in effect, in no order.
    async fn followees_among(&self, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>>;

    /// Those of `items` that are addressed to `reader` and of an author with whom the reader is in no block now, in no
    /// order.
    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>>;

    /// What no push brings and the inbox has not taken in: records of its feed and of route pull beyond `after.pull` of
    /// authors whose edge is in effect, beyond its `from`; and what is addressed to the reader in this feed beyond
    /// `after.direct`. About `limit` at most, then `upto` says how far that is; a record of the feed is never left out below
    /// it, and fewer than `limit` are all there is. Where `after` is beyond all there is, `upto` says what there is.
    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News>;

    /// The number of the newest record of route pull.
    async fn pull_head(&self) -> Result<PullSeq>;

    /// Authors whose newest record of route pull that is not history is numbered beyond `after`, by that number, at most
    /// `limit`.
    async fn pull_heads(&self, after: PullSeq, limit: usize) -> Result<Vec<PullHead>>;

    /// Users after `after` by number, at most `limit`.
    async fn users(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, UserId)>>;

    /// What is held of `reader`'s edges, to authors after `after` by number, at most `limit`; edges that neither follow nor
    /// have a shield up are left out, unless everyone else follows the author.
    async fn held(&self, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>>;

    /// Living direct items after `after` by id, at most `limit`, with those whom they have reached; some have reached nobody.
    async fn direct_items(&self, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>>;

    /// Authors to whom an edge of `reader` is outstanding, by number, at most `limit`.
    async fn edges_due(&self, reader: UserNo, limit: usize) -> Result<Vec<UserNo>>;

    /// What the follow door brings of the first of `edges`, each an author and how far push had come, to the reader's inbox of each of the
    /// feeds in `pulled`, each with how far that had pulled; of the adds of that feed alone: the newest `backfill` up to `edge.from` that no record up to `from` deletes, minus those deleted since; and the living ones
    /// beyond `from` that the cut is past: of route push by its progress, of route pull by its number.
    async fn edge_states(
        &self,
        reader: UserNo,
        edges: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates>;

    /// What it brings of one edge to one inbox.
    async fn edge_state(&self, key: InboxKey, author: UserNo, cut: Cut, backfill: usize) -> Result<EdgeState> {
        let edges = [(author, cut.progress)];
        let states = self.edge_states(key.reader, &edges, &[(key.feed, cut.pull)], backfill).await?.states;
        let state = states.into_iter().flatten().next();
        state.ok_or_else(|| StoreError::corrupt("no answer for the inbox that was asked for"))
    }

    /// The same for every followed author at once, not cut anywhere, with what is addressed to the reader in this feed; the
    /// newest `limit` of all in display order. `progress` says how far push had come, as [`FeedState::ahead`] needs it; of
    /// an author who is not among them it is not known to have begun.
    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState>;

    /// What the inbox's feed holds strictly below `before`, newest first, from the truth alone: the
    /// follow door's rule with no cut, and what is addressed to the reader. Nothing of a rank below `least_rank`, if there
    /// is one. For pages at or below an inbox's floor.
    async fn feed_below(
        &self,
        key: InboxKey,
        before: Option<DisplayKey>,
        least_rank: Option<i64>,
        backfill: usize,
        limit: usize,
    ) -> Result<Vec<FeedAdd>>;

    /// A number greater than any this Archive has given; durable before it answers.
    async fn next_epoch(&self) -> Result<Epoch>;

    /// Events accepted at or before `not_after` and not finished, at most `limit`, oldest first; the
    /// list goes on behind `after`, whether that line still stands or not.
    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>>;

    /// Their fan-out is done: an outbox event finishes every one of its author up to its `seq`.
    ///
    /// Answers those that stay, because they have been reopened: that may have been after their fan-out passed by what
    /// was lost. Each is to be gone through once more, all of it begun after this answer, and finished up to the head
    /// under the `redo` it has there: a number of the author's, which ends with the next reopening. Until then it is
    /// outstanding, whatever becomes of whoever was told and of its job.
    async fn finish(&self, events: &[Event]) -> Result<Vec<Event>>;

    /// Makes the push of these authors outstanding, durably, and due at once, also where it is
    /// outstanding already (a store of inboxes was rolled back). Whoever would finish it is told.
    async fn reopen(&self, authors: &[UserNo]) -> Result<()>;

    /// Answers a small read, as soon as it can: whether the store is there.
    async fn ping(&self) -> Result<()>;

    /// For the stats page; may lag.
    async fn counts(&self) -> Result<ArchiveCounts>;
}
