//! The writes of a call until they are stored: the rows that were loaded, and the changes by kind.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compact_str::CompactString;
use feedgate_common::accept::{self, Ask, Change, Need, Plan, Policy, RetryRow, Rows, Stop};
use feedgate_common::announce::Announcement;
use feedgate_common::archive::{Publish, Write, Written};
use feedgate_common::error::StoreError;
use feedgate_common::graph::Shield;
use feedgate_common::{DirectSeq, DisplayKey, FeedId, ItemId, Millis, Op, OutboxSeq, Record, UserNo};

use super::lines::Changed;
use crate::reposts::{self, Recounted};
use crate::rows;
use crate::versions::Kept;

/// How many bits of an item id lie below its milliseconds.
const COUNT_BITS: u32 = 22;

/// An item that this call makes. Edits and a delete in the same call change `body` and its row.
#[derive(Debug)]
pub(super) struct Made<'a> {
    pub(super) publish: &'a Publish,
    /// The backend's key of the item; `None` if the item is deleted already and another item took the key.
    pub(super) foreign_id: Option<&'a str>,
    /// The body; `None` if the item is deleted already.
    pub(super) body: Option<&'a str>,
}

/// What this call has done to an edge.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EdgeChange {
    /// Since when bringing this change into inboxes is outstanding; `None` if this call has not changed the edge's
    /// effect.
    pub(super) due: Option<Millis>,
    /// When the author was last followed: the number of that change within the call, and the time.
    pub(super) followed: Option<(usize, Millis)>,
    /// Whether all changes of the edge's effect were imported: then nobody is told of them.
    pub(super) quiet: bool,
}

/// A record that this call appends to an outbox.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    pub(super) author: UserNo,
    pub(super) record: Record,
    /// For an add: whether it goes onto the track aside.
    pub(super) aside: bool,
    pub(super) history: bool,
    pub(super) at: Millis,
}

impl Appended {
    /// The sequence number of the record that deletes this add, if this call deletes the add.
    pub(super) fn ended(&self, batch: &Batch<'_>) -> Option<i64> {
        if self.record.op != Op::Add {
            return None;
        }
        let left = batch.left.get(&(self.author, self.record.seq)).copied();
        left.or_else(|| batch.ended.get(&self.record.key.item).copied().flatten()).map(rows::count)
    }
}

/// A record that this call addresses to a reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addressed {
    pub(super) reader: UserNo,
    pub(super) seq: DirectSeq,
    pub(super) op: Op,
    pub(super) feed: FeedId,
    pub(super) author: UserNo,
    pub(super) key: DisplayKey,
    pub(super) at: Millis,
    /// For an add: whether the item has another rank by now.
    pub(super) left: bool,
}

/// A shield as its owner sees it: the owner, the kind, and the user on the other side.
pub(super) type Owned = (UserNo, Shield, UserNo);

/// The writes of a call that are decided and not yet stored.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    /// The rows as they are after the writes so far.
    pub(super) rows: Rows,
    /// The greatest id that the store has given to an item of each author whose row is locked.
    pub(super) last_given: HashMap<UserNo, Option<ItemId>>,
    pub(super) made: BTreeMap<ItemId, Made<'a>>,
    /// The audiences of items that this call makes.
    pub(super) narrowed: Vec<(ItemId, Vec<UserNo>)>,
    /// The new bodies of items from earlier calls; `None` if the item is deleted.
    pub(super) edited: BTreeMap<ItemId, Option<&'a str>>,
    /// The bodies that were replaced, in order; also of items that this call deletes afterwards.
    pub(super) replaced: Vec<Kept<'a>>,
    /// Deleted items of earlier calls whose foreign id an item of this call has taken.
    pub(super) freed: Vec<ItemId>,
    /// The items that have another rank, and the adds that they had before, each with the record that deleted it.
    pub(super) moved: BTreeSet<ItemId>,
    pub(super) left: BTreeMap<(UserNo, OutboxSeq), OutboxSeq>,
    /// The record that deleted each item's newest add; `None` for an item that is in no outbox.
    pub(super) ended: BTreeMap<ItemId, Option<OutboxSeq>>,
    pub(super) retries: BTreeMap<(UserNo, &'a CompactString), RetryRow>,
    pub(super) edges: BTreeMap<(UserNo, UserNo), EdgeChange>,
    /// The number of followers that each author gains, less than 0 if the author loses followers.
    pub(super) counted: BTreeMap<UserNo, i64>,
    /// The authors who are private from now on, or not private any more.
    pub(super) privates: BTreeMap<UserNo, bool>,
    /// The shields that this call has changed: since when the shield is up, or `None` if the shield is down.
    pub(super) shields: BTreeMap<Owned, Option<(usize, Millis)>>,
    /// Authors whose row has changed, and since when their push is outstanding if records were appended.
    pub(super) authors: BTreeMap<UserNo, Option<Millis>>,
    pub(super) appended: Vec<Appended>,
    pub(super) addressed: Vec<Addressed>,
    /// For each reader: since when the records that this call addresses to the reader are outstanding, and whether all
    /// of them were imported.
    pub(super) told: BTreeMap<UserNo, (Millis, bool)>,
    /// How lines of notifications change.
    pub(super) lines: Changed<'a>,
    /// The direct items that were deleted by themselves, and not with a change of a line.
    pub(super) ended_alone: BTreeSet<ItemId>,
    /// How the numbers of reposts change.
    pub(super) reposts: Recounted,
    /// What other programs are to be told, in the order of the operations.
    pub(super) announced: Vec<Announcement>,
    /// How many changes so far have an order that shows in a list.
    listed: usize,
}

impl<'a> Batch<'a> {
    /// Decides the next write of the call, and keeps what it changes.
    pub(super) fn take(&mut self, ask: &'a Ask, policy: Policy) -> Result<Written, Stop> {
        loop {
            match accept::decide(&self.rows, ask, policy) {
                Ok(plan) => {
                    for change in &plan.changes {
                        self.note(&plan, change);
                        self.rows.apply_one(change);
                    }
                    if !matches!(ask.write(), Write::Line(_)) {
                        let direct = plan.ended().filter(|id| self.ended.get(id) == Some(&None));
                        self.ended_alone.extend(direct);
                    }
                    self.announced.extend(accept::announcements(ask, &plan));
                    return Ok(plan.answer);
                }
                Err(Stop::Needs(needs)) => match needs[..] {
                    [Need::NewId(author)] if self.last_given.contains_key(&author) => {
                        self.offer_id(author, ask.now())?
                    }
                    _ => return Err(Stop::Needs(needs)),
                },
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Keeps a change. To be called when all earlier changes are applied to the rows, and this change is not.
    fn note(&mut self, plan: &Plan<'a>, change: &Change<'a>) {
        let Plan { at, history, .. } = *plan;
        match change {
            Change::Append { author, record, aside } => {
                self.authors.entry(*author).or_default().get_or_insert(at);
                self.appended.push(Appended { author: *author, record: *record, aside: *aside, history, at });
            }
            Change::Address { readers, op, author, feed, key } => {
                for &reader in readers {
                    let seq = self.rows.readers[&reader].direct + 1;
                    let (op, feed, author, key) = (*op, *feed, *author, *key);
                    self.addressed.push(Addressed { reader, seq, op, feed, author, key, at, left: false });
                    self.told.entry(reader).or_insert((at, true)).1 &= history;
                }
            }
            Change::Make { id, publish, .. } => {
                let foreign_id = publish.foreign_id.as_ref();
                if let Some(Some(before)) = foreign_id.and_then(|key| self.rows.foreign_ids.get(key)) {
                    match self.made.get_mut(before) {
                        Some(made) => made.foreign_id = None,
                        None => self.freed.push(*before),
                    }
                }
                let (foreign_id, body) = (foreign_id.map(CompactString::as_str), Some(publish.body.get()));
                self.made.insert(*id, Made { publish, foreign_id, body });
            }
            Change::Repost { original, id, counts } => reposts::note(&mut self.reposts, *original, *id, *counts),
            Change::Narrow { id, readers } => self.narrowed.push((*id, readers.clone())),
            Change::Edit { id, body, keeps, .. } => {
                if *keeps {
                    self.keep(*id, at);
                }
                self.set_body(*id, Some(body.get()));
            }
            Change::Move { id, by, .. } => {
                // Only an item that this call has made or has moved has adds among the records of this call.
                if !self.moved.insert(*id) || self.made.contains_key(id) {
                    let adds = self.addressed.iter_mut().filter(|to| to.key.item == *id);
                    adds.for_each(|to| to.left = true);
                }
                if let (Some(Some(row)), Some(by)) = (self.rows.items.get(id), by) {
                    self.left.insert((row.author, row.seq), *by);
                }
            }
            Change::End { id, by } => {
                self.set_body(*id, None);
                self.ended.insert(*id, *by);
            }
            Change::Remember { author, key, retry } => _ = self.retries.insert((*author, key), *retry),
            Change::Edge { edge, before, now, listed, effect } => {
                let followed = listed.map(|since| self.stamp(since));
                let change = self.edges.entry(*edge).or_default();
                change.followed = followed.or(change.followed);
                if *effect {
                    change.quiet = history && (change.due.is_none() || change.quiet);
                    change.due.get_or_insert(at);
                }
                *self.counted.entry(edge.1).or_default() += Change::counted(*edge, *before, *now);
            }
            Change::Shield { user, shield, other, since } => {
                let since = since.map(|since| self.stamp(since));
                self.shields.insert((*user, *shield, *other), since);
            }
            Change::Line { id, line, begins, joined, left } => self.lines.note(*id, line, *begins, joined, left),
            Change::Private { author, private } => _ = self.privates.insert(*author, *private),
            Change::Classify { author, .. } => _ = self.authors.entry(*author).or_default(),
        }
    }

    /// Keeps the body that an item has, which is about to be replaced at `at`.
    fn keep(&mut self, id: ItemId, at: Millis) {
        let Some(Some(row)) = self.rows.items.get(&id) else { return };
        let body = match self.made.get(&id) {
            Some(made) => made.body,
            None => self.edited.get(&id).copied().flatten(),
        };
        self.replaced.push(Kept { item: id, version: row.version, at, body });
    }

    fn set_body(&mut self, id: ItemId, body: Option<&'a str>) {
        match self.made.get_mut(&id) {
            Some(made) => made.body = body,
            None => _ = self.edited.insert(id, body),
        }
    }

    /// The stamp of a change whose order shows in a list: its number within the call, and its time.
    fn stamp(&mut self, since: Millis) -> (usize, Millis) {
        self.listed += 1;
        (self.listed, since)
    }

    /// Offers an item id greater than every one given to this author before. Ids ascend with time: 42 bits of Unix
    /// milliseconds, then 22 bits of chance and count. If two authors draw the same id, the unique key of items refuses
    /// the second, which draws again.
    fn offer_id(&mut self, author: UserNo, now: Millis) -> Result<(), Stop> {
        let by_clock = first_id(now);
        let last = self.last_given.entry(author).or_default();
        let id = loop {
            let id = match *last {
                Some(last) if last.0 >= by_clock => last.0.checked_add(1 + u64::from(chance() % 64)),
                _ => Some(by_clock + u64::from(chance()) % BY_CHANCE),
            };
            let id = ItemId(id.ok_or_else(|| Stop::Failed(StoreError::unavailable("no item id is left")))?);
            *last = Some(id);
            if !matches!(self.rows.items.get(&id), Some(Some(_))) {
                break id;
            }
        };
        self.authors.entry(author).or_default();
        self.rows.new_id = Some((author, id));
        Ok(())
    }
}

/// Random ids are only in the lower half of a millisecond's ids. The upper half is for ids that are given in order.
const BY_CHANCE: u64 = 1 << (COUNT_BITS - 1);

/// The least id of an item that is made at `now`.
fn first_id(now: Millis) -> u64 {
    now.max(0).cast_unsigned().min((1 << 42) - 1) << COUNT_BITS
}

/// Ids for items that one transaction makes, without a look at earlier ids. The ids begin at random and go on in order,
/// so two items of one transaction have the same id only if the transaction makes more than [`BY_CHANCE`] items. If
/// another transaction has drawn the same id, a unique key refuses it, and the transaction starts over with other ids.
pub(super) struct DrawnIds(u64);

impl DrawnIds {
    pub(super) fn begin() -> Self {
        Self(chance().into())
    }

    /// The id of an item that is made at `now`.
    pub(super) fn next(&mut self, now: Millis) -> ItemId {
        self.0 += 1;
        ItemId(first_id(now) + self.0 % BY_CHANCE)
    }
}

fn chance() -> u32 {
    getrandom::u32().expect("the system has randomness")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_that_one_transaction_draws_within_a_millisecond_are_all_different() {
        let mut ids = DrawnIds::begin();
        let drawn: HashSet<ItemId> = (0..10_000).map(|_| ids.next(5)).collect();
        assert_eq!(drawn.len(), 10_000);
    }
}
