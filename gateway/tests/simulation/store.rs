//! One inbox as the subscription sees it: a log that is cut as a prefix and begins anew in a new epoch.

use std::collections::BTreeSet;

use feedgate_common::{Epoch, Position};
use feedgate_gateway::subscription::{Ask, Found};

/// A change, by item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Add(u32),
    Delete(u32),
}

/// What a log keeps when it is trimmed.
const KEEP: usize = 8;

pub(crate) struct Store {
    epoch: u64,
    /// Sequence ids up to here are cut off.
    cut: u64,
    log: Vec<Change>,
    shown: BTreeSet<u32>,
    next_item: u32,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { epoch: 1, cut: 0, log: vec![], shown: BTreeSet::new(), next_item: 1 }
    }

    pub(crate) fn head(&self) -> Position {
        Position { epoch: Epoch(self.epoch), offset: self.cut + self.log.len() as u64 }
    }

    /// What the feed holds.
    pub(crate) fn feed(&self) -> BTreeSet<u32> {
        self.shown.clone()
    }

    pub(crate) fn add(&mut self) {
        self.log.push(Change::Add(self.next_item));
        self.shown.insert(self.next_item);
        self.next_item += 1;
    }

    pub(crate) fn delete(&mut self, nth: usize) {
        if let Some(item) = self.shown.iter().copied().nth(nth % self.shown.len().max(1)) {
            self.shown.remove(&item);
            self.log.push(Change::Delete(item));
        }
    }

    pub(crate) fn trim(&mut self) {
        let cut = self.log.len().saturating_sub(KEEP);
        self.log.drain(..cut);
        self.cut += cut as u64;
    }

    /// The inbox is lost and rebuilt: another epoch, other sequence ids.
    pub(crate) fn rebuild(&mut self) {
        self.epoch += 1;
        self.cut = 0;
        self.log = self.shown.iter().copied().map(Change::Add).collect();
    }

    /// The changes after a position, if it is served.
    pub(crate) fn after(&self, own: Position, limit: usize) -> Option<&[Change]> {
        let from = own.offset.checked_sub(self.cut)? as usize;
        let served = own.epoch.0 == self.epoch && from <= self.log.len();
        served.then(|| &self.log[from..self.log.len().min(from.saturating_add(limit))])
    }

    /// The answer to a subscription, and the changes that go with it.
    pub(crate) fn answer(&self, ask: Ask, limit: usize) -> (Found, Vec<Change>) {
        let head = self.head();
        match ask {
            Ask::Head => (Found::Head(head), vec![]),
            Ask::Serves(own) if self.after(own, 1).is_some() => (Found::Head(head), vec![]),
            Ask::Serves(_) => (Found::Gone(head), vec![]),
            Ask::After(own) => match self.after(own, limit) {
                Some(changes) => {
                    let (first, last) = (own.offset + 1, own.offset + changes.len() as u64);
                    (Found::Changes { first, last, head: head.offset }, changes.to_vec())
                }
                None => (Found::Gone(head), vec![]),
            },
        }
    }
}
