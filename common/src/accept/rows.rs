//! What a home has loaded for the writes of a call, and what has become of it.

use std::collections::HashMap;
use std::hash::Hash;

use compact_str::CompactString;

use super::plan::{Change, Plan};
use crate::archive::Edge;
use crate::change::{Class, Route};
use crate::error::StoreError;
use crate::graph::{Shields, effective_edge};
use crate::{DirectSeq, DisplayKey, FeedId, Generation, ItemId, Millis, Op, OutboxSeq, UserId, UserNo};

use super::{Decision, Pair, Stop, all};

/// Something that a decision needs and that is not in [`Rows`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The user's number, or that there is none.
    User(UserId),
    /// A number for a user who has none: the write that names the user is accepted.
    Number(UserId),
    /// An author's row.
    Author(UserNo),
    /// A reader's row.
    Reader(UserNo),
    /// The row of an edge, as (reader, author), or that there is none.
    Edge(UserNo, UserNo),
    /// An item, or that there is none.
    Item(ItemId),
    /// The record that ended an item's add, or that none did.
    Ended(ItemId),
    /// The item that has a foreign id, or had it last; or that there is none.
    ForeignId(CompactString),
    /// What an author's idempotency key stands for, or that it is new.
    Retry(UserNo, CompactString),
    /// An id that no item has, for a new item of this author.
    NewId(UserNo),
}

/// What decides about an author's items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuthorRow {
    /// The last sequence number given.
    pub head: OutboxSeq,
    /// The last add that is in step: newer in display order than all before it that are.
    pub last_in_step: Option<DisplayKey>,
    /// Whether any add is not in step.
    pub has_aside: bool,
    /// As the business asked.
    pub class: Class,
    /// The head when everyone began to follow, if everyone does.
    pub everyone_since: Option<OutboxSeq>,
    /// How many edges are in effect that have a row. Only used to choose the route of an author of class `auto`.
    pub followers: u64,
}

/// What decides about a reader's edges, and what is addressed to the reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReaderRow {
    /// At least the generation of each of the reader's edges.
    pub counter: Generation,
    /// The number of the last record that was addressed to the reader.
    pub direct: DirectSeq,
}

/// What is held of a reader and an author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeRow {
    /// Whether the reader follows, whatever the shields.
    pub follows: bool,
    /// Those that are up.
    pub shields: Shields,
    /// Of the last change of its effect.
    pub generation: Generation,
    /// The author's head when it last took effect.
    pub from: OutboxSeq,
    /// Where what came before the follow ends, if that is below `from`: the follow was imported.
    pub past: Option<OutboxSeq>,
}

impl EdgeRow {
    /// The edge that fan-out sees.
    pub fn edge(self) -> Edge {
        effective_edge(Some((self.follows, self.shields, self.generation, self.from)), None)
    }
}

/// An item, living or gone, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// Whose it is.
    pub author: UserNo,
    /// Where its add stands; 0 if it stands in no outbox.
    pub seq: OutboxSeq,
    /// Its display time.
    pub published_at: Millis,
    /// Its rank. A home that has forgotten that of a gone item says 0.
    pub rank: i64,
    /// Its version. A home that has forgotten that of a gone item says 0.
    pub version: u32,
    /// Which of its readers' feeds it goes to.
    pub feed: FeedId,
    /// How its records reach readers.
    pub door: Door,
    /// Of the payload that was accepted first.
    pub fingerprint: [u8; 16],
    /// False once it is deleted.
    pub living: bool,
}

impl ItemRow {
    /// Where `id`, which is this item, stands in display order.
    pub fn key(&self, id: ItemId) -> DisplayKey {
        DisplayKey { rank: self.rank, item: id }
    }
}

/// How an item's records reach readers: settled when it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// From its author's outbox.
    Outbox(Route),
    /// Addressed to these, by number, ascending.
    Direct(Vec<UserNo>),
}

impl Door {
    /// To whom it is addressed; nobody if it is for the followers.
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
    /// Of its payload.
    pub fingerprint: [u8; 16],
    /// From then on the key counts as new.
    pub expires: Millis,
}

/// The rows that a home has loaded for the writes of a call, as they are after those writes that were decided. A key that
/// a map lacks is not loaded; a key whose value is `None` has no row in the store.
#[derive(Debug, Default)]
pub struct Rows {
    /// Numbers by name.
    pub users: HashMap<UserId, Option<UserNo>>,
    /// A user who has published nothing has a row of zeros.
    pub authors: HashMap<UserNo, AuthorRow>,
    /// A user who has followed nobody has a row of zeros.
    pub readers: HashMap<UserNo, ReaderRow>,
    /// By reader and author.
    pub edges: HashMap<Pair, Option<EdgeRow>>,
    /// Living and gone.
    pub items: HashMap<ItemId, Option<ItemRow>>,
    /// The record that ended an item's add.
    pub ended: HashMap<ItemId, Option<OutboxSeq>>,
    /// The item that has a foreign id, or had it last.
    pub foreign_ids: HashMap<CompactString, Option<ItemId>>,
    /// By author and idempotency key, also where its time is over.
    pub retries: HashMap<(UserNo, CompactString), Option<RetryRow>>,
    /// An id for the next new item, and of whom.
    pub new_id: Option<(UserNo, ItemId)>,
}

fn loaded<K: Eq + Hash, V: Copy>(rows: &HashMap<K, V>, key: &K, need: impl FnOnce() -> Need) -> Result<V, Need> {
    rows.get(key).copied().ok_or_else(need)
}

impl Rows {
    pub(super) fn known(&self, name: &UserId) -> Result<Option<UserNo>, Need> {
        loaded(&self.users, name, || Need::User(name.clone()))
    }

    /// The user's number; the home gives one if there is none yet.
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

    pub(super) fn edge(&self, (reader, author): Pair) -> Result<Option<EdgeRow>, Need> {
        loaded(&self.edges, &(reader, author), || Need::Edge(reader, author))
    }

    /// The edge as it is held. One of an author whom everyone follows is there before it has a row.
    pub(super) fn held(&self, edge: Pair) -> Result<EdgeRow, Need> {
        if let Some(row) = self.edge(edge)? {
            return Ok(row);
        }
        let everyone_since = self.author(edge.1)?.everyone_since;
        Ok(EdgeRow { follows: everyone_since.is_some(), from: everyone_since.unwrap_or(0), ..EdgeRow::default() })
    }

    pub(super) fn item(&self, id: ItemId) -> Result<Option<&ItemRow>, Need> {
        self.items.get(&id).map(Option::as_ref).ok_or(Need::Item(id))
    }

    /// An item that a key stands for.
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

    pub(super) fn new_id(&self, author: UserNo) -> Result<ItemId, Need> {
        let of_author = self.new_id.filter(|(of, _)| *of == author);
        of_author.map(|(_, id)| id).ok_or(Need::NewId(author))
    }

    /// Makes the rows what they are once the plan is stored, for the writes behind it. The plan must be of these rows.
    pub fn apply(&mut self, plan: &Plan<'_>) {
        for change in &plan.changes {
            self.apply_one(change);
        }
    }

    fn apply_one(&mut self, change: &Change<'_>) {
        match change {
            Change::Append { author, record, aside } => {
                let row = self.authors.entry(*author).or_default();
                row.head = record.seq;
                match (record.op, aside) {
                    (Op::Add, false) => row.last_in_step = Some(record.key),
                    (Op::Add, true) => row.has_aside = true,
                    _ => {}
                }
            }
            Change::Address { readers, .. } => {
                for reader in readers {
                    self.readers.entry(*reader).or_default().direct += 1;
                }
            }
            Change::Make { id, item, publish } => {
                self.items.insert(*id, Some(item.clone()));
                if let Some(key) = &publish.foreign_id {
                    self.foreign_ids.insert(key.clone(), Some(*id));
                }
                self.new_id = None;
            }
            Change::Edit { id, version, .. } => {
                if let Some(Some(row)) = self.items.get_mut(id) {
                    row.version = *version;
                }
            }
            Change::End { id, by } => {
                if let Some(Some(row)) = self.items.get_mut(id) {
                    row.living = false;
                }
                self.ended.insert(*id, *by);
            }
            Change::Remember { author, key, retry } => {
                self.retries.insert((*author, (*key).clone()), Some(*retry));
            }
            Change::Edge { edge, before, now, .. } => {
                self.edges.insert(*edge, Some(*now));
                let counter = &mut self.readers.entry(edge.0).or_default().counter;
                *counter = now.generation.max(*counter);
                let followers = &mut self.authors.entry(edge.1).or_default().followers;
                *followers = followers.saturating_add_signed(Change::counted(*before, *now));
            }
            Change::Shield { .. } => {}
            Change::Classify { author, class, everyone_since } => {
                let row = self.authors.entry(*author).or_default();
                (row.class, row.everyone_since) = (*class, *everyone_since);
            }
        }
    }
}
