//! The Archive holds the truth: items, outboxes, follow edges, and events that are still to be worked off.
//!
//! Invariants that every implementation ("home") keeps:
//! - [`Archive::write`] is one transaction per call. Item, outbox record and event, or edge and event, are durable
//!   together before it answers (I6).
//! - Every read sees only what is durable. Each call of a method reads one snapshot.
//! - An author's records are dense from 1 in commit order. Nothing appears later at or below a head that was served.
//! - The changes of an edge take ever greater generations. Its `from` is the outbox head in the transaction of the
//!   change.
//! - Records of route pull are numbered over all authors in commit order. A read that shows one number shows every
//!   record below it.

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

/// What a push step needs of a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    /// The reader who follows.
    pub reader: UserNo,
    /// The generation of the edge.
    pub generation: Generation,
    /// Records up to here are not pushed to this reader.
    pub from: OutboxSeq,
    /// The reader's edge counter, read in the same snapshot as the edge. It is at least the generation of every change
    /// of the reader's edges that the snapshot shows. An implementation may use one counter for all readers.
    pub counter: Generation,
}

/// Some consecutive records of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    /// The records in order, without gaps.
    pub records: Vec<Record>,
    /// The sequence number of the author's newest record.
    pub head: OutboxSeq,
    /// The number of the author's newest record of route pull; 0 if there never was one.
    pub last_pull: PullSeq,
    /// The newest of `records` that was not imported, 0 if all were. Nobody is told of the records after it.
    pub live: OutboxSeq,
}

/// An author with records of route pull, and how far these go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PullHead {
    /// The number of one of the author's records of route pull: the newest one, or the newest that was not imported.
    pub pull_seq: PullSeq,
    /// The author of these records.
    pub author: UserNo,
}

/// What is known of an author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Author {
    /// The class that the backend has given to the author.
    pub class: Class,
    /// How many edges to the author are on.
    pub followers: u64,
    /// The sequence number of the author's newest record.
    pub head: OutboxSeq,
    /// The outbox head when everyone began to follow; `None` if not everyone does.
    pub everyone_since: Option<OutboxSeq>,
}

/// Work that an accepted write left behind. It is outstanding until it is finished, not only until it is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The author's outbox has grown to at least `seq`.
    Outbox {
        /// The author of the outbox.
        author: UserNo,
        /// The head of the outbox.
        seq: OutboxSeq,
        /// When the event is [finished](Archive::finish) after a reopening: the number under which it was gone through
        /// again; else 0.
        redo: u64,
    },
    /// An edge has changed.
    Edge {
        /// The reader of the edge.
        reader: UserNo,
        /// The author of the edge.
        author: UserNo,
        /// The generation that the change gave to the edge.
        generation: Generation,
    },
    /// Something was addressed to the reader.
    Direct {
        /// The reader to whom it was addressed.
        reader: UserNo,
        /// The number of the newest record addressed to the reader.
        seq: DirectSeq,
    },
}

/// A line of the list of outstanding events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// Since when the event counts as outstanding, in Unix ms; 0 or less if it was reopened.
    pub since: Millis,
    /// The work that is to be done.
    pub event: Event,
}

/// The counts that `/v1/stats` shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// How many users were ever named.
    pub users: u64,
    /// How many items live.
    pub items: u64,
    /// How many edges are on.
    pub edges: u64,
    /// How many events are outstanding.
    pub events: u64,
}

/// The store of the truth: items, outboxes, follow edges and events.
///
/// Every method fails with a [`StoreError`] if the store does not answer. Any future may be dropped. Of a dropped
/// [`Archive::write`] either all has happened or nothing; any other method may then be called again.
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// Carries out `writes` in order, in one durable transaction, and answers each in its place. A refused one changes
    /// nothing and does not stop the others. `now`, in Unix ms, is the time of acceptance.
    async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>>;

    /// The number of each user. A name that was never seen gets a new one. Durable when it answers.
    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>>;

    /// The number of each user; `None` for a name that has none.
    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>>;

    /// The number of each named feed. A name that was never seen gets a new one, never that of [`FeedId::MAIN`].
    /// Durable when it answers; a name keeps its number for ever.
    async fn intern_feeds(&self, names: &[CompactString]) -> Result<Vec<FeedId>>;

    /// Every feed of which a reader may have an inbox: [`FeedId::MAIN`] first, then each that was ever
    /// [named](Self::intern_feeds), by number.
    async fn feeds(&self) -> Result<Vec<FeedId>>;

    /// The name of each number. A number that was never given is an error.
    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>>;

    /// The items of these ids in the order asked; `None` for one that does not live.
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>>;

    /// The item with this key of the backend: the living one, else the one deleted last; `None` if no item has it. Any
    /// text may be asked for.
    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>>;

    /// The records of `author` after `after`, at most `limit`.
    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox>;

    /// The living items that `author` has published to `feed`, strictly below `before` in display order, newest first,
    /// at most `limit`.
    async fn profile(
        &self,
        author: UserNo,
        feed: FeedId,
        before: Option<DisplayKey>,
        limit: usize,
    ) -> Result<Vec<DisplayKey>>;

    /// The followers of `author` in `bucket` (of `buckets`) after `after`, by number, at most `limit`. Fewer than that
    /// means that there are no more.
    async fn recipients(
        &self,
        author: UserNo,
        bucket: Bucket,
        buckets: u16,
        after: Option<UserNo>,
        limit: usize,
    ) -> Result<Vec<Recipient>>;

    /// The followers of `author` in all buckets, in no order, at most `limit`. Fewer than that means that these are
    /// all.
    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>>;

    /// The edge between a reader and an author.
    async fn edge(&self, reader: UserNo, author: UserNo) -> Result<Edge>;

    /// Every author whom the reader follows.
    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>>;

    /// The users whom `reader` follows, newest follow first, after `cursor`, at most `limit`.
    async fn following(&self, reader: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// The users who follow `author`, newest follow first, after `cursor`, at most `limit`.
    async fn followers(&self, author: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// The users that `user` follows and that follow `user`, newest follow of `user` first, after `cursor`, at most
    /// `limit`.
    async fn mutual(&self, user: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// The users against whom `user` has this shield up, newest first, after `cursor`, at most `limit`.
    async fn shielded(&self, user: UserNo, shield: Shield, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>>;

    /// What is known of an author.
    async fn author(&self, author: UserNo) -> Result<Author>;

    /// Gives the `readers` whose edge to `author` is on, in no order.
    async fn followers_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>>;

    /// Gives the `authors` to whom the edge of `reader` is on, in no order.
    async fn followees_among(&self, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>>;

    /// Gives the `items` that are addressed to `reader` and whose author is in no block with the reader now, in no
    /// order.
    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>>;

    /// What no push brings and the inbox has not taken in. First the records of its feed with route pull and a number
    /// beyond `after.pull`, of authors whose edge is on, beyond the edge's `from`. Then what is addressed to the reader
    /// in this feed beyond `after.direct`. It is at most about `limit` entries; `upto` says how far they are complete.
    /// Fewer than `limit` means that these are all. If `after` is beyond all there is, `upto` says where that ends.
    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News>;

    /// The number of the newest record of route pull; 0 if there is none.
    async fn pull_head(&self) -> Result<PullSeq>;

    /// The authors whose newest record of route pull that was not imported has a number beyond `after`, by that number,
    /// at most `limit`.
    async fn pull_heads(&self, after: PullSeq, limit: usize) -> Result<Vec<PullHead>>;

    /// The users after `after` by number, at most `limit`.
    async fn users(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, UserId)>>;

    /// What is stored of `reader`'s edges, to authors after `after` by number, at most `limit`. An edge without a
    /// follow and without a shield is left out, unless everyone else follows the author.
    async fn held(&self, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>>;

    /// The living direct items after `after` by id, at most `limit`, each with the readers whom it has reached; some
    /// have reached nobody.
    async fn direct_items(&self, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>>;

    /// The authors of `reader`'s outstanding edges, by number, at most `limit`.
    async fn edges_due(&self, reader: UserNo, limit: usize) -> Result<Vec<UserNo>>;

    /// What a follow step brings of the first of `edges` to the reader's inboxes of the feeds in `pulled`. Each of
    /// `edges` is an author and how far push had come; each of `pulled` is a feed and how far its inbox had pulled. Of
    /// the author's adds to that feed they are the newest `backfill` up to `edge.from` that no record up to `from`
    /// deletes, without those deleted since; and the living ones beyond `from` that push (by progress) or pull (by
    /// number) has passed already.
    async fn edge_states(
        &self,
        reader: UserNo,
        edges: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates>;

    /// What a follow step brings of one edge to one inbox.
    async fn edge_state(&self, key: InboxKey, author: UserNo, cut: Cut, backfill: usize) -> Result<EdgeState> {
        let edges = [(author, cut.progress)];
        let states = self.edge_states(key.reader, &edges, &[(key.feed, cut.pull)], backfill).await?.states;
        let state = states.into_iter().flatten().next();
        state.ok_or_else(|| StoreError::corrupt("no answer for the inbox that was asked for"))
    }

    /// The content of a rebuilt inbox: what [`Self::edge_states`] brings of every followed author, without any cut, and
    /// what is addressed to the reader in this feed; of all these the newest `limit` in display order. `progress` says
    /// how far push had come, for [`FeedState::ahead`]; for an author who is not in it, push counts as not begun.
    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState>;

    /// What the inbox's feed holds strictly below `before`, newest first, at most `limit`: what [`Self::edge_states`]
    /// brings without any cut, and what is addressed to the reader. Nothing has a rank below `least_rank`, if there is
    /// one. For pages at or below an inbox's floor.
    async fn feed_below(
        &self,
        key: InboxKey,
        before: Option<DisplayKey>,
        least_rank: Option<i64>,
        backfill: usize,
        limit: usize,
    ) -> Result<Vec<FeedAdd>>;

    /// A number greater than any that this Archive has given. Durable before it answers.
    async fn next_epoch(&self) -> Result<Epoch>;

    /// The events accepted at or before `not_after` and not finished, at most `limit`, oldest first. The list goes on
    /// after the line `after`, whether that one still exists or not.
    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>>;

    /// Marks events as finished: their fan-out is done. An outbox event finishes all events of its author up to its
    /// `seq`.
    ///
    /// Answers those that stay outstanding because they were reopened, maybe after their fan-out had passed what was
    /// lost. Each must be gone through once more, all of it begun after this answer. Then it is finished up to the
    /// head, under the `redo` of the answer, which is valid until the next reopening. Until then it stays outstanding,
    /// even if the caller or its job is lost.
    async fn finish(&self, events: &[Event]) -> Result<Vec<Event>>;

    /// Makes the push of these authors outstanding and due at once, also if it is outstanding already: a store of
    /// inboxes was rolled back. Durable when it answers. A call of [`Self::finish`] that would have finished it is
    /// told.
    async fn reopen(&self, authors: &[UserNo]) -> Result<()>;

    /// Answers a small read as soon as it can: whether the store is there.
    async fn ping(&self) -> Result<()>;

    /// The counts for the statistics page. They may be some seconds old.
    async fn counts(&self) -> Result<ArchiveCounts>;
}
