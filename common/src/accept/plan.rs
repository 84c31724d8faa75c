//! What a home is asked to accept, and what it has to store for it.

use compact_str::CompactString;

use super::rows::{Door, EdgeRow, ItemRow, RetryRow, Rows};
use super::{Decision, Pair, all};
use crate::archive::{Audience, Publish, Refused, Write, Written};
use crate::change::Class;
use crate::graph::Shield;
use crate::import::Import;
use crate::{Body, DisplayKey, FeedId, ItemId, Millis, Op, OutboxSeq, Record, UserNo};

/// What one write of a call became, where the store did not fail.
pub type Refusal = std::result::Result<Written, Refused>;

/// A write, with what can be worked out of it without the store.
#[derive(Debug)]
pub struct Ask {
    pub(super) write: Write,
    /// What stamps it.
    pub(super) now: Millis,
    /// All zero but for an item.
    pub(super) fingerprint: [u8; 16],
}

impl Ask {
    /// Hashes the payload: not for a thread on which others wait.
    pub fn new(write: Write, now: Millis) -> Self {
        let fingerprint = published(&write).map_or([0; 16], Publish::fingerprint);
        Self { write, now, fingerprint }
    }

    /// What is asked.
    pub fn write(&self) -> &Write {
        &self.write
    }

    /// What stamps it.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let body = match &self.write {
            Write::Edit { body, .. } => body.get().len(),
            write => published(write).map_or(0, |publish| publish.body.get().len() + named(&publish.audience)),
        };
        size_of::<Self>() + body
    }

    /// The item that it makes, now or of old.
    pub fn published(&self) -> Option<&Publish> {
        published(&self.write)
    }
}

fn published(write: &Write) -> Option<&Publish> {
    match write {
        Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => Some(publish),
        _ => None,
    }
}

/// About what an audience takes, with the numbers behind its names.
fn named(audience: &Audience) -> usize {
    match audience {
        Audience::Followers => 0,
        Audience::Users(users) => users.iter().map(|user| user.as_str().len() + 64).sum(),
    }
}

/// What a write that is accepted becomes.
#[derive(Debug)]
pub struct Plan<'a> {
    /// What it is answered with, once the changes are durable.
    pub answer: Written,
    /// When its records and events are accepted.
    pub at: Millis,
    /// It is history: nobody is told of it. What it leaves outstanding is told of only if something else that is
    /// outstanding in the same place is not history.
    pub history: bool,
    /// To be stored in this order.
    pub changes: Vec<Change<'a>>,
}

/// One change of the store.
#[derive(Debug)]
pub enum Change<'a> {
    /// The next record of an outbox. Its push is outstanding since then, unless it was already.
    Append {
        /// Whose.
        author: UserNo,
        /// What it says. One of route pull is to be given its number.
        record: Record,
        /// Of an add: it is not in step.
        aside: bool,
    },
    /// A record for each of these readers. Taking it in is outstanding since then, unless it was already.
    Address {
        /// To whom.
        readers: Vec<UserNo>,
        /// Never `Forget`.
        op: Op,
        /// Whose item it is.
        author: UserNo,
        /// To which of the readers' feeds.
        feed: FeedId,
        /// The item.
        key: DisplayKey,
    },
    /// A new item. Its foreign id, if it has one, is taken from a deleted item that may have it.
    Make {
        /// Its id.
        id: ItemId,
        /// Its row.
        item: ItemRow,
        /// Its body, kind and foreign id.
        publish: &'a Publish,
    },
    /// A living item's new version.
    Edit {
        /// Which.
        id: ItemId,
        /// The version.
        version: u32,
        /// Its body.
        body: &'a Body,
    },
    /// An item is gone, if it was not yet; of one in an outbox this record ended its add.
    End {
        /// Which.
        id: ItemId,
        /// The record; [`DELETED_LATER`](super::DELETED_LATER) if there is none yet; `None` for what is addressed to
        /// readers.
        by: Option<OutboxSeq>,
    },
    /// An idempotency key stands for an item from now on.
    Remember {
        /// Whose.
        author: UserNo,
        /// Which.
        key: &'a CompactString,
        /// For what.
        retry: RetryRow,
    },
    /// An edge is held otherwise. It has a row from then on.
    Edge {
        /// The reader and the author.
        edge: Pair,
        /// Its row until then.
        before: Option<EdgeRow>,
        /// Its row.
        now: EdgeRow,
        /// A follow that has no place in the lists yet: when it began.
        listed: Option<Millis>,
        /// What fan-out sees has changed: taking that in is outstanding since then, unless it was already.
        effect: bool,
    },
    /// A shield as its owner sees it in a list.
    Shield {
        /// Whose.
        user: UserNo,
        /// Which.
        shield: Shield,
        /// Against whom.
        other: UserNo,
        /// Since when it is up; `None` if it is down.
        since: Option<Millis>,
    },
    /// An author has another class.
    Classify {
        /// Who.
        author: UserNo,
        /// Which.
        class: Class,
        /// The outbox head when everyone began to follow, if everyone does.
        everyone_since: Option<OutboxSeq>,
    },
}

impl Change<'_> {
    /// By how much an edge's change changes the author's followers.
    pub fn counted(before: Option<EdgeRow>, now: EdgeRow) -> i64 {
        i64::from(now.edge().on) - i64::from(before.is_some_and(|row| row.edge().on))
    }
}

/// A plan that is being made.
pub(super) struct Draft<'r, 'a> {
    pub(super) rows: &'r Rows,
    pub(super) now: Millis,
    pub(super) history: bool,
    pub(super) pull_above: u64,
    pub(super) changes: Vec<Change<'a>>,
}

impl<'r> Draft<'r, '_> {
    /// A later record of an item, by the door that its add took; where it stands, if in an outbox.
    pub(super) fn follow_up(&mut self, id: ItemId, row: &'r ItemRow, op: Op) -> Decision<Option<OutboxSeq>> {
        let (author, feed, key) = (row.author, row.feed, row.key(id));
        match &row.door {
            Door::Outbox(route) => {
                let seq = self.rows.author(author)?.head + 1;
                let record = Record { seq, op, route: *route, feed, key };
                self.changes.push(Change::Append { author, record, aside: false });
                Ok(Some(seq))
            }
            Door::Direct(readers) => {
                self.address(readers.clone(), op, (author, feed), key)?;
                Ok(None)
            }
        }
    }

    /// A record for each of these readers.
    pub(super) fn address(
        &mut self,
        readers: Vec<UserNo>,
        op: Op,
        (author, feed): (UserNo, FeedId),
        key: DisplayKey,
    ) -> Decision<()> {
        all(readers.iter().map(|reader| self.rows.reader(*reader)))?;
        self.changes.push(Change::Address { readers, op, author, feed, key });
        Ok(())
    }
}
