//! The rows that are loaded for the writes of a call, and how they change with each write.

use std::collections::HashMap;
use std::hash::Hash;

use compact_str::CompactString;

use crate::archive::Edge;
use crate::change::{Class, Route};
use crate::error::StoreError;
use crate::graph::{Shields, effective_edge};
use crate::notify::lines::LineRow;
use crate::{DirectSeq, DisplayKey, FeedId, Generation, InboxKey, ItemId, Millis, OutboxSeq, UserId, UserNo};

use super::{Decision, Pair, Stop, all, is_own};

/// A row that a decision needs and that [`Rows`] does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The number of a user, or that there is none.
    User(UserId),
    /// A number for a user who has none; a new one is given. The write that names the user is accepted.
    Number(UserId),
    /// The row of an author.
    Author(UserNo),
    /// The row of a reader.
    Reader(UserNo),
    /// The row of an edge, as (reader, author), or that there is none.
    Edge(UserNo, UserNo),
    /// Whether an author is private.
    Private(UserNo),
    /// The row of an item, or that there is none.
    Item(ItemId),
    /// The record that deleted an item's add, or that none did.
    Ended(ItemId),
    /// The item that has a foreign id, or had it last; or that there is none.
    ForeignId(CompactString),
    /// What an author's idempotency key stands for, or that it is new.
    Retry(UserNo, CompactString),
    /// An id that no item has, for a new item of this author.
    NewId(UserNo),
    /// When the newest item was published that a reader has seen of a feed, or that none was seen.
    Sight(InboxKey),
    /// The line of which the deed with this key is a member, or that it is of none.
    Member(CompactString),
    /// The newest line of this reader and group, or that there is none.
    Group(UserNo, CompactString),
    /// The row of a line with this many of its newest members, or that there is no such line.
    Line(ItemId, usize),
    /// The readers in the audience of a narrowed item.
    Audience(ItemId),
}

/// What decisions need of an author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuthorRow {
    /// The sequence number of the author's newest record.
    pub head: OutboxSeq,
    /// The last add in step: newer in display order than all adds in step before it.
    pub last_in_step: Option<DisplayKey>,
    /// Whether any add was put aside.
    pub has_aside: bool,
    /// The class that the backend has given to the author.
    pub class: Class,
    /// The head of the outbox when everyone began to follow; `None` if not everyone does.
    pub everyone_since: Option<OutboxSeq>,
    /// How many edges of others that are on have a row. It only decides the route for an author of class `auto`.
    pub followers: u64,
    /// Whether the author's own items are to stand in its feed, and it has no edge to itself yet.
    pub lacks_own_edge: bool,
}

/// What decisions need of a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReaderRow {
    /// A counter that is at least the generation of each of the reader's edges.
    pub counter: Generation,
    /// The number of the last record that was addressed to the reader.
    pub direct: DirectSeq,
}

/// What is stored of an edge between a reader and an author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeRow {
    /// Whether the reader follows, whatever shields are up.
    pub follows: bool,
    /// Whether the reader has asked to follow, and the author, who is private, has not answered. A reader who asks does
    /// not follow, and is in no block with the author.
    pub asked: bool,
    /// The shields that are up.
    pub shields: Shields,
    /// The generation of the last change of the edge's effect.
    pub generation: Generation,
    /// The head of the author's outbox when the edge was last switched on.
    pub from: OutboxSeq,
    /// The end of the records from before the follow, if it is below `from`: then the follow was imported.
    pub past: Option<OutboxSeq>,
}

impl EdgeRow {
    /// The edge as fan-out sees it.
    pub fn edge(self) -> Edge {
        effective_edge(Some((self.follows, self.shields, self.generation, self.from)), None)
    }

    /// The end of the records from before the follow, of which only the newest are shown. There may be records between
    /// it and `from` that push or pull still brings.
    pub fn past(self) -> OutboxSeq {
        self.past.unwrap_or(self.from)
    }
}

/// An item, living or deleted, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// The author of the item.
    pub author: UserNo,
    /// The sequence number of the item's add; 0 if the item stands in no outbox.
    pub seq: OutboxSeq,
    /// The display time, in Unix ms.
    pub published_at: Millis,
    /// The rank; 0 if the store has forgotten the rank of a deleted item.
    pub rank: i64,
    /// The version; 0 if the store has forgotten the version of a deleted item.
    pub version: u32,
    /// The feed in which every reader gets the item.
    pub feed: FeedId,
    /// The way the item's records reach readers.
    pub door: Door,
    /// The fingerprint of the item's payload that was accepted first.
    pub fingerprint: [u8; 16],
    /// Whether the item lives; false once it is deleted.
    pub living: bool,
    /// The item that this item reposts, if it is a repost. Also `None` if the store has forgotten this of a deleted
    /// item.
    pub repost_of: Option<ItemId>,
    /// The users whom the item mentions; none once the item is deleted.
    pub mentions: Vec<UserId>,
}

impl ItemRow {
    /// The place of the item, whose id is `id`, in display order.
    pub fn key(&self, id: ItemId) -> DisplayKey {
        DisplayKey { rank: self.rank, item: id }
    }
}

/// The way of an item's records to readers. It is settled when the item is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// From the author's outbox, by this route.
    Outbox(Route),
    /// Addressed to these readers, ascending by number.
    Direct(Vec<UserNo>),
}

impl Door {
    /// The readers to whom the item is addressed; none if it is for the followers.
    pub fn readers(&self) -> &[UserNo] {
        match self {
            Self::Outbox(_) => &[],
            Self::Direct(readers) => readers,
        }
    }
}

/// What an idempotency key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRow {
    /// The item that the first request became.
    pub item: ItemId,
    /// The fingerprint of the first request's payload.
    pub fingerprint: [u8; 16],
    /// From this time on, in Unix ms, the key counts as new.
    pub expires: Millis,
}

/// The rows that are loaded for the writes of a call, as they are after the writes that were decided. A key that is not
/// in a map is not loaded; a key whose value is `None` has no row in the store.
#[derive(Debug, Default)]
pub struct Rows {
    /// The number of each user by name.
    pub users: HashMap<UserId, Option<UserNo>>,
    /// The row of each author. An author who has published nothing has a row of zeros.
    pub authors: HashMap<UserNo, AuthorRow>,
    /// The row of each reader. A reader who has followed nobody has a row of zeros.
    pub readers: HashMap<UserNo, ReaderRow>,
    /// The row of each edge, by reader and author.
    pub edges: HashMap<Pair, Option<EdgeRow>>,
    /// Whether each author is private.
    pub privates: HashMap<UserNo, bool>,
    /// The row of each item, living or deleted.
    pub items: HashMap<ItemId, Option<ItemRow>>,
    /// The record that deleted each item's add.
    pub ended: HashMap<ItemId, Option<OutboxSeq>>,
    /// The item that has each foreign id, or had it last.
    pub foreign_ids: HashMap<CompactString, Option<ItemId>>,
    /// The rows by author and idempotency key, also those whose time is over.
    pub retries: HashMap<(UserNo, CompactString), Option<RetryRow>>,
    /// When the newest item was published that a reader has seen of a feed; `None` if none was seen.
    pub sights: HashMap<InboxKey, Option<Millis>>,
    /// The line of which each deed is a member, by the key of the deed.
    pub members: HashMap<CompactString, Option<ItemId>>,
    /// The newest line of each reader and group.
    pub groups: HashMap<(UserNo, CompactString), Option<ItemId>>,
    /// The row of each line, with its newest members.
    pub lines: HashMap<ItemId, Option<LineRow>>,
    /// The readers in the audience of each narrowed item.
    pub audiences: HashMap<ItemId, Vec<UserNo>>,
    /// The id for the next new item, and the author of that item.
    pub new_id: Option<(UserNo, ItemId)>,
}

fn loaded<K: Eq + Hash, V: Copy>(rows: &HashMap<K, V>, key: &K, need: impl FnOnce() -> Need) -> Result<V, Need> {
    rows.get(key).copied().ok_or_else(need)
}

impl Rows {
    pub(super) fn known(&self, name: &UserId) -> Result<Option<UserNo>, Need> {
        loaded(&self.users, name, || Need::User(name.clone()))
    }

    /// The number of a user. If there is none yet, the store has to give one.
    pub(super) fn number(&self, name: &UserId) -> Result<UserNo, Need> {
        self.known(name)?.ok_or_else(|| Need::Number(name.clone()))
    }

    pub(super) fn pair(&self, (reader, author): (&UserId, &UserId)) -> Decision<Pair> {
        let numbers = all([reader, author].into_iter().map(|name| self.number(name)))?;
        Ok((numbers[0], numbers[1]))
    }

    pub(super) fn author(&self, author: UserNo) -> Result<AuthorRow, Need> {
        loaded(&self.authors, &author, || Need::Author(author))
    }

    pub(super) fn reader(&self, reader: UserNo) -> Result<ReaderRow, Need> {
        loaded(&self.readers, &reader, || Need::Reader(reader))
    }

    pub(super) fn private(&self, author: UserNo) -> Result<bool, Need> {
        loaded(&self.privates, &author, || Need::Private(author))
    }

    pub(super) fn edge(&self, (reader, author): Pair) -> Result<Option<EdgeRow>, Need> {
        loaded(&self.edges, &(reader, author), || Need::Edge(reader, author))
    }

    /// The edge as it is stored. If everyone follows the author, an edge without a row counts as a follow, except the
    /// author's edge to itself.
    pub(super) fn held(&self, edge: Pair) -> Result<EdgeRow, Need> {
        if let Some(row) = self.edge(edge)? {
            return Ok(row);
        }
        if is_own(edge) {
            return Ok(EdgeRow::default());
        }
        let everyone_since = self.author(edge.1)?.everyone_since;
        Ok(EdgeRow { follows: everyone_since.is_some(), from: everyone_since.unwrap_or(0), ..EdgeRow::default() })
    }

    pub(super) fn item(&self, id: ItemId) -> Result<Option<&ItemRow>, Need> {
        self.items.get(&id).map(Option::as_ref).ok_or(Need::Item(id))
    }

    /// The row of an item for which a key stands; `Corrupt` if it is missing.
    pub(super) fn item_of_key(&self, id: ItemId) -> Decision<&ItemRow> {
        let row = self.item(id)?;
        row.ok_or_else(|| Stop::Failed(StoreError::corrupt(format_args!("item {id} has keys but no row"))))
    }

    pub(super) fn ended(&self, id: ItemId) -> Result<Option<OutboxSeq>, Need> {
        loaded(&self.ended, &id, || Need::Ended(id))
    }

    pub(super) fn foreign_id(&self, key: &CompactString) -> Result<Option<ItemId>, Need> {
        loaded(&self.foreign_ids, key, || Need::ForeignId(key.clone()))
    }

    pub(super) fn retry(&self, author: UserNo, key: &CompactString) -> Result<Option<RetryRow>, Need> {
        loaded(&self.retries, &(author, key.clone()), || Need::Retry(author, key.clone()))
    }

    pub(super) fn sight(&self, key: InboxKey) -> Result<Option<Millis>, Need> {
        loaded(&self.sights, &key, || Need::Sight(key))
    }

    pub(super) fn member(&self, key: &CompactString) -> Result<Option<ItemId>, Need> {
        loaded(&self.members, key, || Need::Member(key.clone()))
    }

    pub(super) fn group(&self, reader: UserNo, group: &CompactString) -> Result<Option<ItemId>, Need> {
        loaded(&self.groups, &(reader, group.clone()), || Need::Group(reader, group.clone()))
    }

    /// The row of a line with at least `newest` of its newest members, or with all members if there are fewer.
    pub(super) fn line(&self, id: ItemId, newest: usize) -> Result<Option<&LineRow>, Need> {
        let row = self.lines.get(&id).map(Option::as_ref).ok_or(Need::Line(id, newest))?;
        let has_enough = |row: &LineRow| row.newest.len() >= newest || row.newest.len() as u64 >= row.line.count;
        if row.is_none_or(has_enough) { Ok(row) } else { Err(Need::Line(id, newest)) }
    }

    pub(super) fn audience(&self, item: ItemId) -> Result<&[UserNo], Need> {
        self.audiences.get(&item).map(Vec::as_slice).ok_or(Need::Audience(item))
    }

    pub(super) fn new_id(&self, author: UserNo) -> Result<ItemId, Need> {
        let of_author = self.new_id.filter(|(of, _)| *of == author);
        of_author.map(|(_, id)| id).ok_or(Need::NewId(author))
    }
}
