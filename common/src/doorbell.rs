//! What nodes tell each other: that inboxes have grown, that a connection is to be closed, that sessions are to be
//! confirmed, that something has changed around items.
//!
//! A wake is a bit, not a number: losing, repeating or reordering all of them may change latency,
//! never content. What an inbox has grown by travels along so that a gateway may save itself a read;
//! the same is in the log.

use std::sync::Arc;

use async_trait::async_trait;

use crate::archive::PullHead;
use crate::change::from_u8;
use crate::error::Result;
use crate::inboxes::{Grown, Numbered};
use crate::trace::Traced;
use crate::{Entry, InboxKey, ItemId, Position, Record, UserNo};

/// Inboxes that have grown by the same records of one author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The author of the records.
    pub author: UserNo,
    /// The records that the inboxes have taken in, in outbox order; empty if the message does not say.
    pub records: Vec<Record>,
    /// Which inboxes, and how many of the records each.
    pub inboxes: Vec<Grown>,
    /// Under which step of a trace the changes stand that are traced.
    pub traced: Vec<Traced>,
}

impl Growth {
    /// The growth of one inbox, without the records that it has taken in.
    pub fn of_one(key: InboxKey, author: UserNo, head: Position) -> Self {
        Self { author, records: vec![], inboxes: vec![Grown { key, head, appended: 0, generation: 0 }], traced: vec![] }
    }

    /// The entries that `grown` has taken in, with their sequence ids; none if the message did not say.
    pub fn entries(&self, grown: &Grown) -> impl ExactSizeIterator<Item = Numbered> {
        let told = (grown.appended as usize).min(self.records.len());
        let before = grown.head.offset.saturating_sub(told as u64);
        let (author, generation) = (self.author, grown.generation);
        let last = &self.records[self.records.len() - told..];
        last.iter().enumerate().map(move |(n, record)| Numbered {
            seq: before + 1 + n as u64,
            entry: Entry::of(record, author, generation),
        })
    }
}

/// Why a node is asked to close one of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// A newer connection of the same device has taken its place.
    Replaced,
    /// Somebody with the right to has ended the session.
    Kicked,
    /// An older connection of the device, which ended before its claim was answered, has taken its place. The device is
    /// to connect again.
    Displaced,
}

/// What has changed around items, and who may see less than before. For nodes whose devices watch items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stir {
    /// What has changed, in no order; a change may stand here several times.
    pub touches: Vec<Touch>,
    /// Readers who may no longer see items that they saw.
    pub readers: Vec<UserNo>,
}

/// A change of one item, or of what stands around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Touch {
    /// The item around which it has happened.
    pub item: ItemId,
    /// The comment that has changed; `None` if it was something else.
    pub comment: Option<(ItemId, Talked)>,
}

/// What has become of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Talked {
    /// The comment was written.
    Made = 1,
    /// The comment has another body.
    Edited = 2,
    /// The comment was deleted.
    Deleted = 3,
}

from_u8!(Talked { Made, Edited, Deleted });

/// What a node hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// These inboxes have grown.
    Growth(&'a Growth),
    /// An author who is pulled has news: followers who are online may take it in.
    Hot(PullHead),
    /// Wakes may have been lost: any inbox may have grown.
    Missed,
    /// One of this node's connections is to be closed.
    Close {
        /// The user whose connection it is.
        user: UserNo,
        /// The number of the connection within the node.
        connection: u64,
        /// The reason, which the client is told.
        why: Closing,
    },
    /// A device's message for a session of this node, which came by a request to another node.
    Message {
        /// The random number of the session.
        session: u128,
        /// What the device has sent.
        message: &'a [u8],
    },
    /// The reader of this inbox has seen more of it.
    Seen(Onlooker<'a>),
    /// Something has changed around items, or who sees them.
    Stirred(&'a Stir),
    /// The sessions of these users may have been replaced or ended without a word to their nodes: every node asks
    /// the session pool which of its own still stand.
    Confirm(&'a [UserNo]),
}

/// Who has seen more of a feed, and on which connection that was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Onlooker<'a> {
    /// The inbox of the reader and the feed.
    pub key: InboxKey,
    /// The node of the connection, which has its answer and need not be told; empty if there is none.
    pub node: &'a str,
    /// The number of the connection within its node.
    pub connection: u64,
}

/// Called with what a node hears. Quick, never blocks: it sets bits.
pub type OnHeard = Arc<dyn Fn(Heard<'_>) + Send + Sync>;

/// Best effort by contract: there is nothing to handle when a wake is lost.
#[async_trait]
pub trait Doorbell: Send + Sync + 'static {
    /// Wakes the nodes that serve these inboxes. Called after the append has committed.
    async fn ring(&self, growth: &Growth);

    /// Tells every node, this one too, that an author who is pulled has news.
    async fn hot(&self, head: PullHead);

    /// Asks `node` to close a connection. Gives false if that could not even be sent. May be lost too: the connection
    /// then ends when its node next confirms its sessions.
    async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) -> bool;

    /// Passes a device's message to the session with this random number on `node`. May be lost too: the device then
    /// gets no reply.
    async fn pass(&self, node: &str, session: u128, message: &[u8]);

    /// Tells the nodes that hold sessions of this reader, this one too, that the reader has seen more of a feed. Called
    /// when that is stored. May be lost too: devices then learn of it when they next look.
    async fn seen(&self, by: Onlooker<'_>);

    /// Tells every node, this one too, what has changed around items. Called when that is stored. May be lost too:
    /// nodes then learn of it when they next look at the items that are watched.
    async fn stirred(&self, stir: &Stir);

    /// Asks every node, this one too, to confirm its sessions of these users in the session pool.
    async fn confirm(&self, users: &[UserNo]);

    /// Everything this node is told from now on also calls `on_heard`, until the returned guard is
    /// dropped.
    fn listen(&self, on_heard: OnHeard) -> Listening;

    /// Answers as soon as it can: whether this node can be reached by others.
    async fn ping(&self) -> Result<()>;
}

/// A guard: the node listens until it is dropped.
pub struct Listening(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Listening {
    /// A guard that runs `stop` once when dropped.
    pub fn until(stop: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(stop)))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(stop) = self.0.take() {
            stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{DisplayKey, Route};
    use crate::{Epoch, FeedId, Op};

    #[test]
    fn an_inbox_has_taken_in_the_last_records_up_to_its_head() {
        let record = |seq| Record {
            seq,
            op: Op::Add,
            route: Route::Push,
            feed: FeedId::MAIN,
            key: DisplayKey { rank: 0, item: ItemId(seq) },
        };
        let head = Position { epoch: Epoch(3), offset: 11 };
        let grown = Grown { key: InboxKey::main(UserNo(1)), head, appended: 2, generation: 4 };
        let growth =
            Growth { author: UserNo(9), records: (5..=7).map(record).collect(), inboxes: vec![grown], traced: vec![] };
        let entries: Vec<_> = growth.entries(&grown).map(|n| (n.seq, n.entry.outbox_seq)).collect();
        assert_eq!(entries, [(10, 6), (11, 7)]);
        assert_eq!(Growth { records: vec![], ..growth }.entries(&grown).len(), 0);
    }
}
