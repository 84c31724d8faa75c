//! The state that the operations of a call work on, in memory: what was loaded, and what has become of it.

use std::collections::{BTreeSet, HashMap};

use compact_str::CompactString;
use feedgate_common::archive::Edge;
use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, Generation, ItemId, Millis, Op, OutboxSeq, UserNo};

/// An author's row, locked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Author {
    pub(super) head: OutboxSeq,
    /// The greatest key in lane 0.
    pub(super) last_in_step: Option<DisplayKey>,
    pub(super) has_aside: bool,
    /// The greatest id given to one of its items.
    pub(super) last_given: Option<ItemId>,
}

/// An item as far as writing needs it.
#[derive(Debug, Clone)]
pub(super) struct ItemState {
    pub(super) author: UserNo,
    /// Where its add stands.
    pub(super) seq: OutboxSeq,
    pub(super) published_at: Millis,
    pub(super) rank: i64,
    pub(super) version: u32,
    pub(super) route: Route,
    pub(super) fingerprint: [u8; 16],
    pub(super) kind: Option<CompactString>,
    pub(super) foreign_id: Option<CompactString>,
    pub(super) alive: bool,
    /// Its body, if this call has given it one.
    pub(super) body: Option<String>,
    pub(super) change: Change,
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

/// An edge, and which of these changes was its last and when.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EdgeState {
    pub(super) edge: Edge,
    pub(super) changed: Option<(usize, Millis)>,
}

/// A record this call appends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    pub(super) author: UserNo,
    pub(super) seq: OutboxSeq,
    pub(super) op: Op,
    pub(super) route: Route,
    /// Of an add.
    pub(super) aside: bool,
    pub(super) key: DisplayKey,
    pub(super) at: Millis,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What stamps the operation that is being carried out.
    pub(super) now: Millis,
    pub(super) authors: HashMap<UserNo, Author>,
    /// Their edge counters.
    pub(super) readers: HashMap<UserNo, Generation>,
    pub(super) items: HashMap<ItemId, ItemState>,
    pub(super) foreign_ids: HashMap<CompactString, ItemId>,
    pub(super) retries: HashMap<(UserNo, CompactString), Retry>,
    pub(super) edges: HashMap<(UserNo, UserNo), EdgeState>,
    pub(super) appended: Vec<Appended>,
    /// Which add each delete of this call ends.
    pub(super) ended: HashMap<(UserNo, OutboxSeq), OutboxSeq>,
    pub(super) changed_readers: BTreeSet<UserNo>,
    pub(super) edge_changes: usize,
}

impl Ledger {
    /// The author's next record. `None` if its row is not locked.
    pub(super) fn append(&mut self, author: UserNo, op: Op, route: Route, key: DisplayKey) -> Option<OutboxSeq> {
        let row = self.authors.get_mut(&author)?;
        row.head += 1;
        self.appended.push(Appended { author, seq: row.head, op, route, aside: false, key, at: self.now });
        Some(row.head)
    }
}
