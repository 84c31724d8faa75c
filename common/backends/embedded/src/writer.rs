//! The one thread that writes: group commit.
//!
//! ```text
//!   queue ──▶ op 1, op 2, … op n ──▶ sync once ──▶ publish the view ──▶ answer 1 … n
//!   (bounded)   each its own transaction    while this waits, the next group gathers
//! ```
//!
//! Invariants:
//! - Nothing is published or answered before it is as durable as its group's strictest operation
//!   asked for.
//! - After a failed write nothing is published or answered with success any more: what the disk
//!   holds is unknown until the store is opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use arc_swap::ArcSwap;
use feedgate_common::StoreError;
use feedgate_common::error::Result;
use fjall::{PersistMode, SingleWriterTxDatabase};
use tokio::sync::oneshot;

use crate::database::{Durability, Request};
use crate::view::{Spaces, Tx, View, store_error};

/// The most operations one sync covers. More would only make the first one wait.
const GROUP_MAX: usize = 256;

/// An operation as the queue holds it, whatever it answers.
pub(crate) trait Queued: Send {
    /// What it asks for.
    fn durability(&self) -> Durability;

    /// Carries it out; whether it wrote anything.
    fn run(&mut self, store: &SingleWriterTxDatabase, spaces: &Spaces) -> bool;

    /// Answers, now that its group has ended so: with the group's number, or not at all.
    fn answer(self: Box<Self>, ended: &Result<u64>);
}

/// An operation and who waits for it.
pub(crate) struct Pending<T> {
    pub(crate) request: Request<T>,
    pub(crate) outcome: Option<Result<T>>,
    pub(crate) asker: oneshot::Sender<Result<(T, u64)>>,
    pub(crate) weight: Weight,
}

/// A share of the queue's bytes, given back when it is dropped.
pub(crate) struct Weight {
    pub(crate) bytes: usize,
    pub(crate) total: Arc<AtomicUsize>,
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<T: Send> Queued for Pending<T> {
    fn durability(&self) -> Durability {
        self.request.durability
    }

    fn run(&mut self, store: &SingleWriterTxDatabase, spaces: &Spaces) -> bool {
        // Whoever no longer waits is spared; that is what keeps an overloaded queue useful.
        let Some(op) = self.request.op.take().filter(|_| !self.asker.is_closed()) else { return false };
        let mut tx = Tx::begin(store, spaces);
        let done = op(&mut tx).and_then(|value| tx.commit().map(|wrote| (value, wrote)));
        let wrote = matches!(done, Ok((_, true)));
        self.outcome = Some(done.map(|(value, _)| value));
        wrote
    }

    fn answer(self: Box<Self>, ended: &Result<u64>) {
        let Self { request, outcome, asker, weight } = *self;
        let Some(outcome) = outcome else { return };
        let answer = match (outcome, ended) {
            (Ok(value), Ok(group)) => {
                if let Some(then) = request.then {
                    then(&value);
                }
                Ok((value, *group))
            }
            (Ok(_), Err(error)) => Err(error.clone()),
            (Err(error), _) => Err(error),
        };
        drop(weight);
        // The asker may have been cancelled; the operation has happened all the same.
        let _ = asker.send(answer);
    }
}

/// The writer's own state. Lives on its thread.
pub(crate) struct Writer {
    pub(crate) store: SingleWriterTxDatabase,
    pub(crate) spaces: Spaces,
    pub(crate) queue: Receiver<Box<dyn Queued>>,
    pub(crate) published: Arc<ArcSwap<View>>,
    /// Something was committed since the last sync.
    pub(crate) unsynced: bool,
    /// Groups ended so far.
    pub(crate) group: u64,
    /// Why nothing can be written any more.
    pub(crate) failed: Option<StoreError>,
}

impl Writer {
    /// Works until every sender is gone and the queue is empty.
    pub(crate) fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        while let Ok(first) = self.queue.recv() {
            group.push(first);
            group.extend(self.queue.try_iter().take(GROUP_MAX - 1));
            let ended = self.commit(&mut group);
            for op in group.drain(..) {
                op.answer(&ended);
            }
        }
        if let Err(error) = self.store.persist(PersistMode::SyncAll) {
            tracing::error!(%error, "the last sync of the store failed; what was accepted had its own");
        }
    }

    /// One group up to the point where it may be answered.
    fn commit(&mut self, group: &mut [Box<dyn Queued>]) -> Result<u64> {
        let mut wrote = false;
        let mut strictest = Durability::Buffered;
        for op in group.iter_mut() {
            strictest = strictest.max(op.durability());
            wrote |= op.run(&self.store, &self.spaces);
        }
        self.unsynced |= wrote;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.settle(strictest, wrote, group.len()).inspect_err(|error| {
            tracing::error!(%error, "the store can no longer be written");
            self.failed = Some(error.clone());
        })
    }

    /// Makes the group durable and lets everyone see it.
    fn settle(&mut self, strictest: Durability, wrote: bool, ops: usize) -> Result<u64> {
        if self.unsynced && strictest == Durability::Synced {
            self.store.persist(PersistMode::SyncData).map_err(store_error)?;
            self.unsynced = false;
            self.group += 1;
            tracing::debug!(target: "feedgate::durable", group = self.group, ops, "synced");
        } else if wrote {
            self.store.persist(PersistMode::Buffer).map_err(store_error)?;
            self.group += 1;
        }
        if wrote {
            let view = View { snapshot: self.store.read_tx(), spaces: self.spaces.clone() };
            self.published.store(Arc::new(view));
        }
        Ok(self.group)
    }
}
