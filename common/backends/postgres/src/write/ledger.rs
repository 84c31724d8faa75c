//! The state that the operations of a call work on, in memory: what was loaded, and what has become of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compact_str::CompactString;
use feedgate_common::archive::Edge;
use feedgate_common::change::{Class, Route, route_of};
use feedgate_common::graph::{Shield, Shields, effective_edge};
use feedgate_common::{DirectSeq, DisplayKey, FeedId, Generation, ItemId, Millis, Op, OutboxSeq, UserNo};

/// An author's row, locked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Author {
    pub(super) head: OutboxSeq,
    /// The greatest key in lane 0.
    pub(super) last_in_step: Option<DisplayKey>,
    pub(super) has_aside: bool,
    /// The greatest id given to one of its items.
    pub(super) last_given: Option<ItemId>,
    pub(super) class: Class,
    /// The head when it became everyone's.
    pub(super) everyone_since: Option<OutboxSeq>,
    /// Edges in effect; only read for class `auto` where something is published.
    pub(super) followers: i64,
}

/// A reader's row, locked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reader {
    /// The generation of the newest change of an edge.
    pub(super) counter: Generation,
    /// The number of the newest thing addressed to the reader.
    pub(super) direct: DirectSeq,
    /// What this call addresses to the reader is history.
    pub(super) quiet: bool,
}

/// An item as far as writing needs it.
#[derive(Debug, Clone)]
pub(super) struct ItemState {
    pub(super) author: UserNo,
    /// Where its add stands; 0 if it is direct.
    pub(super) seq: OutboxSeq,
    pub(super) published_at: Millis,
    pub(super) rank: i64,
    pub(super) version: u32,
    pub(super) feed: FeedId,
    pub(super) door: Door,
    pub(super) fingerprint: [u8; 16],
    pub(super) kind: Option<CompactString>,
    pub(super) foreign_id: Option<CompactString>,
    pub(super) alive: bool,
    /// Its body, if this call has given it one.
    pub(super) body: Option<String>,
    pub(super) change: Change,
}

/// How an item's records reach readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Door {
    /// From its author's outbox.
    Outbox(Route),
    /// Addressed to these, by number.
    Direct(Vec<UserNo>),
}

impl Door {
    /// To whom it is addressed.
    pub(super) fn readers(&self) -> &[UserNo] {
        match self {
            Self::Outbox(_) => &[],
            Self::Direct(readers) => readers,
        }
    }
}

/// What this call has done to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Changed,
    Made,
}

/// An idempotency key's item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    pub(super) item: ItemId,
    pub(super) fingerprint: [u8; 16],
    pub(super) expires: Millis,
    pub(super) changed: bool,
}

/// An edge as it is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) follows: bool,
    pub(super) shields: Shields,
    /// Of the last change of its effect.
    pub(super) generation: Generation,
    /// The author's head when it last took effect.
    pub(super) from: OutboxSeq,
    /// Where what came before the follow ends, if that is below `from`: the follow was imported.
    pub(super) past: Option<OutboxSeq>,
}

impl Held {
    pub(super) fn edge(self) -> Edge {
        effective_edge(Some((self.follows, self.shields, self.generation, self.from)), None)
    }
}

/// What this call has done to an edge; times in the order of its operations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EdgeChange {
    /// Since when taking it in is outstanding, if its effect has changed.
    pub(super) due: Option<Millis>,
    /// When it was last followed: the how-manieth change of the call, and the time.
    pub(super) followed: Option<(usize, Millis)>,
    /// Nobody is told of it: what changed its effect is history.
    pub(super) quiet: bool,
}

/// A record this call appends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    pub(super) author: UserNo,
    pub(super) seq: OutboxSeq,
    pub(super) op: Op,
    pub(super) route: Route,
    pub(super) feed: FeedId,
    /// Of an add.
    pub(super) aside: bool,
    pub(super) history: bool,
    pub(super) key: DisplayKey,
    pub(super) at: Millis,
}

/// Something this call addresses to a reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addressed {
    pub(super) reader: UserNo,
    pub(super) seq: DirectSeq,
    pub(super) op: Op,
    pub(super) feed: FeedId,
    pub(super) author: UserNo,
    pub(super) key: DisplayKey,
    pub(super) at: Millis,
}

/// A shield as its owner sees it.
pub(super) type Owned = (UserNo, Shield, UserNo);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What stamps the operation that is being carried out.
    pub(super) now: Millis,
    /// What it writes is history: nobody is told of it.
    pub(super) history: bool,
    /// Above how many followers an author of class `auto` is pulled.
    pub(super) pull_above: u64,
    pub(super) authors: HashMap<UserNo, Author>,
    pub(super) readers: HashMap<UserNo, Reader>,
    pub(super) items: HashMap<ItemId, ItemState>,
    pub(super) foreign_ids: HashMap<CompactString, ItemId>,
    /// Deleted items of earlier calls whose foreign id an item of this call has taken.
    pub(super) freed: Vec<ItemId>,
    pub(super) retries: HashMap<(UserNo, CompactString), Retry>,
    /// Those that have a row, or get one.
    pub(super) edges: HashMap<(UserNo, UserNo), Held>,
    pub(super) changed_edges: BTreeMap<(UserNo, UserNo), EdgeChange>,
    /// By how many the edges in effect have become more.
    pub(super) counted: BTreeMap<UserNo, i64>,
    /// Since when those that are up are; `None` is down.
    pub(super) shields: BTreeMap<Owned, Option<(usize, Millis)>>,
    /// Authors whose row has changed, and since when push is outstanding if records were appended.
    pub(super) changed_authors: BTreeMap<UserNo, Option<Millis>>,
    pub(super) appended: Vec<Appended>,
    /// Which add each delete of this call ends.
    pub(super) ended: HashMap<(UserNo, OutboxSeq), OutboxSeq>,
    /// The same of deletes before, where it was asked for.
    pub(super) ended_before: HashMap<(UserNo, OutboxSeq), OutboxSeq>,
    pub(super) addressed: Vec<Addressed>,
    /// Direct items that a delete of this call ends.
    pub(super) ended_direct: BTreeSet<ItemId>,
    /// How many changes there were whose order shows in a list.
    pub(super) listed: usize,
}

impl Ledger {
    /// The author's next record. `None` if its row is not locked.
    pub(super) fn append(
        &mut self,
        author: UserNo,
        op: Op,
        (route, feed): (Route, FeedId),
        key: DisplayKey,
    ) -> Option<OutboxSeq> {
        let row = self.authors.get_mut(&author)?;
        row.head += 1;
        self.changed_authors.entry(author).or_default().get_or_insert(self.now);
        let (seq, at, history) = (row.head, self.now, self.history);
        self.appended.push(Appended { author, seq, op, route, feed, aside: false, history, key, at });
        Some(seq)
    }

    /// The next number of each of these readers. `None` if a row is not locked.
    pub(super) fn address(
        &mut self,
        readers: &[UserNo],
        op: Op,
        (author, feed): (UserNo, FeedId),
        key: DisplayKey,
    ) -> Option<()> {
        for &reader in readers {
            let row = self.readers.get_mut(&reader)?;
            row.direct += 1;
            row.quiet &= self.history;
            self.addressed.push(Addressed { reader, seq: row.direct, op, feed, author, key, at: self.now });
        }
        Some(())
    }

    /// The record that has deleted this add, where it was asked for.
    pub(super) fn ended_by(&self, author: UserNo, add: OutboxSeq) -> Option<OutboxSeq> {
        self.ended.get(&(author, add)).or_else(|| self.ended_before.get(&(author, add))).copied()
    }

    /// The route of an `add` of this author now. `None` if its row is not locked.
    pub(super) fn route(&self, author: UserNo) -> Option<Route> {
        let row = self.authors.get(&author)?;
        let followers = row.followers + self.counted.get(&author).copied().unwrap_or_default();
        Some(route_of(row.class, followers.max(0).cast_unsigned(), self.pull_above))
    }

    /// What stamps a change whose order shows in a list.
    pub(super) fn stamp(&mut self) -> (usize, Millis) {
        self.listed += 1;
        (self.listed, self.now)
    }
}
