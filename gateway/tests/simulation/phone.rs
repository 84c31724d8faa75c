//! The device: it applies what comes, in order, and checks that nothing is missing or repeated.

use std::collections::BTreeSet;

use feedgate_common::Position;
use feedgate_gateway::subscription::{Deliver, Opened};

use super::store::{Change, Store};

/// What travels to the device.
#[derive(Debug, Clone)]
pub(crate) enum Frame {
    Opened(Opened),
    /// Changes from this offset on.
    Changes(u64, Vec<Change>),
    Behind(u64),
}

pub(crate) struct Phone {
    deliver: Deliver,
    items: BTreeSet<u32>,
    /// What it has applied, and would recover from.
    pub(crate) applied: Option<Position>,
    /// The last offset it was told of on this connection.
    told: Option<Position>,
}

impl Phone {
    pub(crate) fn new(deliver: Deliver) -> Self {
        Self { deliver, items: BTreeSet::new(), applied: None, told: None }
    }

    pub(crate) fn shown(&self) -> BTreeSet<u32> {
        self.items.clone()
    }

    /// Takes a frame; true if it had to reload page one.
    pub(crate) fn take(&mut self, frame: Frame, store: &Store) -> bool {
        match frame {
            Frame::Opened(opened) if opened.recovered => {
                assert_eq!(Some(opened.position), self.applied, "I9: recovered names the device's own position");
                self.told = Some(opened.position);
                false
            }
            Frame::Opened(opened) => {
                self.told = Some(opened.position);
                self.reload(store);
                if self.deliver == Deliver::Items {
                    // Changes between the reply and the page come again as pushes; applying them twice is harmless.
                    self.applied = Some(opened.position);
                }
                true
            }
            Frame::Changes(first, changes) => {
                let told = self.told.as_mut().expect("a push follows the opening");
                assert_eq!(first, told.offset + 1, "I2, I9: no gap and no duplicate");
                told.offset += changes.len() as u64;
                self.applied = self.told;
                self.apply(&changes);
                false
            }
            Frame::Behind(head) => {
                let told = self.told.as_mut().expect("a push follows the opening");
                assert!(head > told.offset, "I2: a head that was told is not told again");
                told.offset = head;
                self.fetch(store)
            }
        }
    }

    /// Notify mode: everything after what it has applied, or page one.
    fn fetch(&mut self, store: &Store) -> bool {
        let applied = self.applied.expect("a device that is told has begun somewhere");
        match store.after(applied, usize::MAX) {
            Some(changes) => {
                let changes = changes.to_vec();
                self.applied = Some(Position { offset: applied.offset + changes.len() as u64, ..applied });
                self.apply(&changes);
                false
            }
            None => {
                self.reload(store);
                true
            }
        }
    }

    fn reload(&mut self, store: &Store) {
        self.applied = Some(store.head());
        self.items = store.feed();
    }

    fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Add(item) => self.items.insert(*item),
                Change::Delete(item) => self.items.remove(item),
            };
        }
    }
}
