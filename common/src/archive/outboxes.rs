//! The outboxes of authors, and the readers who get what stands in them.

use async_trait::async_trait;

use crate::change::{Class, Record};
use crate::error::Result;
use crate::{Bucket, Generation, OutboxSeq, PullSeq, UserNo};

/// Some consecutive records of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    /// The records in order, without gaps.
    pub records: Vec<Record>,
    /// The sequence number of the author's newest record.
    pub head: OutboxSeq,
    /// The number of the author's newest record of route pull; 0 if there never was one.
    pub last_pull: PullSeq,
    /// The numbers of those `records` that were imported, ascending.
    pub imported: Vec<OutboxSeq>,
}

impl Outbox {
    /// The newest of the records that was not imported, 0 if all were. Nobody is told of the records after it.
    pub fn live(&self) -> OutboxSeq {
        let mut newest_first = self.records.iter().rev().map(|record| record.seq);
        newest_first.find(|seq| self.imported.binary_search(seq).is_err()).unwrap_or(0)
    }
}

/// What a worker needs to push what is new of an author, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// Events are [finished](super::Events::finish) up to this record. So every bucket has passed it, unless the
    /// inboxes have lost something since.
    pub finished: OutboxSeq,
    /// The records after `finished`.
    pub outbox: Outbox,
    /// The followers in all buckets, in no order; none if no record after `finished` is pushed.
    pub recipients: Vec<Recipient>,
    /// Whether the followers were read earlier. The set of followers is that of the snapshot, but their counters may be
    /// older, so a step with them is [`kept`](crate::inboxes::Advance::kept).
    pub kept: bool,
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
    /// Whether the author is private: a follow is a request until it is accepted.
    pub private: bool,
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
    /// The reader's edge counter, read in the same snapshot as the edge; or before it, if the follower was
    /// [kept](Ahead::kept). It is at least the generation of every change of the reader's edges that the snapshot of
    /// the counter shows. An implementation may use one counter for all readers.
    pub counter: Generation,
    /// Whether the reader has a device [registered](super::PushDevices::register) for push notifications. The inboxes
    /// do not look at it.
    pub listens: bool,
}

/// An author with records of route pull, and how far these go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PullHead {
    /// The number of one of the author's records of route pull: the newest one, or the newest that was not imported.
    pub pull_seq: PullSeq,
    /// The author of these records.
    pub author: UserNo,
}

/// Reads what fan-out needs of an author: the records, and the followers who get them.
#[async_trait]
pub trait Outboxes: Send + Sync + 'static {
    /// The records of `author` after `after`, at most `limit`.
    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox>;

    /// What is ahead of the push of `author`, with at most so many `records` and `recipients`; fewer means that these
    /// are all. `None` if it is not known how far events are finished, or if the push was reopened: then the caller has
    /// to ask the inboxes for their progress.
    ///
    /// A home whose inboxes are in the same process need not keep this: then the answer is always `None`.
    async fn ahead(&self, _author: UserNo, _records: usize, _recipients: usize) -> Result<Option<Ahead>> {
        Ok(None)
    }

    /// What is known of an author.
    async fn author(&self, author: UserNo) -> Result<Author>;

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

    /// Gives the recipients among `readers`, ascending by number: they follow `author` by an edge of their own that is
    /// on.
    async fn recipients_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<Recipient>>;

    /// Gives the `readers` whose edge to `author` is on, in no order.
    async fn followers_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>>;

    /// The number of the newest record of route pull; 0 if there is none.
    async fn pull_head(&self) -> Result<PullSeq>;

    /// The authors whose newest record of route pull that was not imported has a number beyond `after`, by that number,
    /// at most `limit`.
    async fn pull_heads(&self, after: PullSeq, limit: usize) -> Result<Vec<PullHead>>;
}
