//! Writes before they are decided, and the changes that a decision asks the Archive to store.

use std::borrow::Cow;

use compact_str::CompactString;

use super::rows::{Door, EdgeRow, ItemRow, RetryRow, Rows};
use super::{Decision, Pair, Policy, all, is_own};
use crate::archive::{Audience, Publish, Refused, Write, Written};
use crate::change::Class;
use crate::graph::Shield;
use crate::import::Import;
use crate::notify::lines::{Line, Member, Then};
use crate::{Body, DisplayKey, FeedId, ItemId, Millis, Op, OutboxSeq, Record, UserId, UserNo};

/// The outcome of one write of a call whose store did not fail.
pub type Refusal = std::result::Result<Written, Refused>;

/// A write, with all that can be computed of it without the store.
#[derive(Debug)]
pub struct Ask {
    pub(super) write: Write,
    /// The time of acceptance, in Unix ms.
    pub(super) now: Millis,
    /// The fingerprint of the item's payload; zero for a write that makes no item.
    pub(super) fingerprint: [u8; 16],
}

impl Ask {
    /// Prepares a write that is accepted at `now` (Unix ms). It hashes the payload, so it does not belong on a thread
    /// on which others wait.
    pub fn new(write: Write, now: Millis) -> Self {
        let fingerprint = match &write {
            Write::Notify(wanted) => wanted.publish.fingerprint(),
            Write::Line(wanted) => match &wanted.then {
                Then::Replaced(_, publish) => publish.fingerprint(),
                _ => [0; 16],
            },
            write => published(write).map_or([0; 16], Publish::fingerprint),
        };
        Self { write, now, fingerprint }
    }

    /// The write that is asked for.
    pub fn write(&self) -> &Write {
        &self.write
    }

    /// The time of acceptance, in Unix ms.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// About how many bytes of memory the write takes.
    pub fn bytes(&self) -> usize {
        let body = match &self.write {
            Write::Edit { body, mentions, .. } => {
                body.as_ref().map_or(0, |body| body.get().len()) + names(mentions.as_deref().unwrap_or_default())
            }
            write => published(write)
                .map_or(0, |publish| publish.body.get().len() + named(&publish.audience) + names(&publish.mentions)),
        };
        size_of::<Self>() + body
    }

    /// The item that this write makes, if it makes one; imported ones too.
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

/// About how many bytes an audience takes, with the numbers of its users.
fn named(audience: &Audience) -> usize {
    match audience {
        Audience::Followers => 0,
        Audience::Users(users) => names(users),
        Audience::Narrowed(narrowed) => names(narrowed.readers()),
    }
}

fn names(users: &[UserId]) -> usize {
    users.iter().map(|user| user.as_str().len() + 64).sum()
}

/// The outcome of a write that is accepted.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The answer to the caller, to be given once the changes are durable.
    pub answer: Written,
    /// The time of acceptance of its records and events, in Unix ms.
    pub at: Millis,
    /// Whether the write is imported: then nobody is told of it. What it leaves outstanding is told of only together
    /// with something outstanding in the same place that was not imported.
    pub history: bool,
    /// The changes, to be stored in this order.
    pub changes: Vec<Change<'a>>,
}

impl Plan<'_> {
    /// The items that this plan deletes or edits.
    pub fn outdated(&self) -> impl Iterator<Item = ItemId> {
        self.changes.iter().filter_map(|change| match change {
            Change::End { id, .. } | Change::Edit { id, .. } => Some(*id),
            _ => None,
        })
    }

    /// The items that this plan deletes.
    pub fn ended(&self) -> impl Iterator<Item = ItemId> {
        self.changes.iter().filter_map(|change| match change {
            Change::End { id, .. } => Some(*id),
            _ => None,
        })
    }
}

/// A change that the Archive has to store.
#[derive(Debug)]
pub enum Change<'a> {
    /// Appends the next record to an outbox. The author's push is outstanding since [`Plan::at`], unless it was
    /// already.
    Append {
        /// The author whose outbox grows.
        author: UserNo,
        /// The record. One of route pull also gets the next number of all pulled records.
        record: Record,
        /// For an add: whether it goes onto the track aside, since it is not in step.
        aside: bool,
    },
    /// Appends a record to what is addressed to each of these readers. That is outstanding since [`Plan::at`], unless
    /// it was already.
    Address {
        /// The readers to whom it is addressed.
        readers: Vec<UserNo>,
        /// What it does to the feed; never `Forget`.
        op: Op,
        /// The author of the item.
        author: UserNo,
        /// The feed of each reader to which it goes.
        feed: FeedId,
        /// The item and its rank.
        key: DisplayKey,
    },
    /// Makes an item. If the new item has a foreign id that a deleted item still has, the new item takes the foreign id
    /// over.
    Make {
        /// The id of the new item.
        id: ItemId,
        /// The row of the new item.
        item: ItemRow,
        /// The body, the kind and the foreign id.
        publish: &'a Publish,
    },
    /// Counts a repost of an item, whether that item is there or not.
    Repost {
        /// The item that is reposted.
        original: ItemId,
        /// The id of the repost.
        id: ItemId,
        /// Whether the repost was made, so that it counts (true), or deleted, so that it does not count any more.
        counts: bool,
    },
    /// Keeps the audience of an item that was made right before.
    Narrow {
        /// The item that was made.
        id: ItemId,
        /// The readers, ascending by number. They never change.
        readers: Vec<UserNo>,
    },
    /// Gives a living item a new version.
    Edit {
        /// The item to change.
        id: ItemId,
        /// The new version number.
        version: u32,
        /// The new body of the item.
        body: &'a Body,
        /// The users whom it mentions from now on; `None` keeps those whom it mentions.
        mentions: Option<&'a [UserId]>,
        /// Whether the body before the change is kept, because a user replaced it. Earlier bodies of a notification are
        /// not kept.
        keeps: bool,
    },
    /// Moves a living item to another rank. A record deletes its add, and its new add follows.
    Move {
        /// The item to move.
        id: ItemId,
        /// The row of the item after the change, with the place of its new add.
        item: ItemRow,
        /// The sequence number of the record that deletes its add; `None` if it is addressed to readers.
        by: Option<OutboxSeq>,
    },
    /// Marks an item as deleted, unless it is deleted already, and notes by which record its add ended.
    End {
        /// The item that is deleted.
        id: ItemId,
        /// The sequence number of that record; [`DELETED_LATER`](super::DELETED_LATER) if it is not imported yet;
        /// `None` if the item is addressed to readers.
        by: Option<OutboxSeq>,
    },
    /// Remembers an idempotency key for its item.
    Remember {
        /// The author who used the key.
        author: UserNo,
        /// The key that was used.
        key: &'a CompactString,
        /// The item it stands for, and until when.
        retry: RetryRow,
    },
    /// Changes what is stored of an edge. It has a row from then on.
    Edge {
        /// The reader and the author.
        edge: Pair,
        /// The row before the change; `None` if there was none.
        before: Option<EdgeRow>,
        /// The row after the change.
        now: EdgeRow,
        /// When the follow began, or was asked for, if it has no place in the lists of follows, or of requests, yet.
        listed: Option<Millis>,
        /// Whether fan-out sees a change. Then it is outstanding since [`Plan::at`] to bring it into inboxes, unless it
        /// was already.
        effect: bool,
    },
    /// Changes the line of a shield in its owner's list.
    Shield {
        /// The owner of the shield.
        user: UserNo,
        /// The kind of the shield.
        shield: Shield,
        /// The user on the other side.
        other: UserNo,
        /// Since when the shield is up, in Unix ms; `None` if it is down.
        since: Option<Millis>,
    },
    /// Changes a line of notifications: first members leave, then others join.
    Line {
        /// The id of the line.
        id: ItemId,
        /// The line after the change. If it has no member, it is removed.
        line: Line,
        /// Whether the line is new. From now on, deeds of its group may join this line only.
        begins: bool,
        /// The deeds that join. A deed that is a member of another line leaves that line.
        joined: Cow<'a, [Member]>,
        /// The keys of the members that leave.
        left: &'a [CompactString],
    },
    /// Gives an author another class.
    Classify {
        /// The author to change.
        author: UserNo,
        /// The new class of the author.
        class: Class,
        /// The head of the outbox when everyone began to follow; `None` if not everyone does.
        everyone_since: Option<OutboxSeq>,
    },
    /// Makes an author private, or not private any more.
    Private {
        /// The author to change.
        author: UserNo,
        /// Whether the author is private from now on.
        private: bool,
    },
}

impl Change<'_> {
    /// By how much the change of an edge changes the number of the author's followers: -1, 0 or 1. An author is no
    /// follower of itself.
    pub fn counted(edge: Pair, before: Option<EdgeRow>, now: EdgeRow) -> i64 {
        if is_own(edge) { 0 } else { Self::turned(before, now) }
    }

    /// By how much the change of an edge changes the number of those to whom push brings the author's items: -1, 0 or
    /// 1.
    pub fn turned(before: Option<EdgeRow>, now: EdgeRow) -> i64 {
        i64::from(now.edge().on) - i64::from(before.is_some_and(|row| row.edge().on))
    }
}

/// A plan that is not finished.
pub(super) struct Draft<'r, 'a> {
    pub(super) rows: &'r Rows,
    pub(super) now: Millis,
    pub(super) history: bool,
    pub(super) policy: Policy,
    pub(super) changes: Vec<Change<'a>>,
}

impl<'r> Draft<'r, '_> {
    /// Behind which record a follow that begins now shows everything. `None` stands for the head of the outbox, so that
    /// only the newest items from before the follow are shown.
    pub(super) fn past(&self) -> Option<OutboxSeq> {
        self.policy.whole_past.then_some(0)
    }

    /// Adds a later record of an item, by the way its `add` took. Answers its sequence number; `None` if the item
    /// stands in no outbox.
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

    /// Deletes an item by this record. A repost that lived does not count any more.
    pub(super) fn end(&mut self, id: ItemId, row: &ItemRow, by: Option<OutboxSeq>) {
        self.changes.push(Change::End { id, by });
        if let Some(original) = row.repost_of.filter(|_| row.living) {
            self.changes.push(Change::Repost { original, id, counts: false });
        }
    }

    /// Adds a record for each of these readers; nothing if there are none.
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
