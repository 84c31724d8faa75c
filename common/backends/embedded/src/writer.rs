//! The thread that writes. It commits operations in groups, with one sync for each group.
//!
//! ```text
//!   queue ──▶ op 1, op 2, … op n ──▶ sync once ──▶ publish the view ──▶ answer 1 … n
//!   (bounded)   each its own transaction    while this waits, the next group gathers
//! ```
//!
//! Invariants:
//! - No write is published or answered before it is as durable as the strictest operation of its group asked for.
//! - After a failed write nothing is published, and nothing is answered with success, until the store was opened again
//!   and its files were read again from the disk. Until then it is unknown what the disk holds.
//!
//! A store that failed because disk space or file descriptors ran out is opened again once there is enough; until then
//! readers keep the last view. A store in which one of fjall's own threads failed for an unknown reason is opened again
//! too, but not twice in a minute. After any other failure the process has to end (see [`crate::vital`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use feedgate_common::StoreError;
use feedgate_common::error::Result;
use fjall::{Error, LsmError, PersistMode, SingleWriterTxDatabase};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::files::{Files, Store};
use crate::request::{Durability, Request};
use crate::view::{Spaces, Tx, View};
use crate::vital::{LOOK, Vital};
use crate::{answered, disk, fjall_log};

/// The most operations that one sync covers. With more, the first one would wait longer.
const GROUP_MAX: usize = 256;

/// How many bytes must be free before a store that had no room is opened again: a flush in the background takes as
/// much.
const ROOM: u64 = 16 << 20;

/// How often the writer tries to open the store again.
const AGAIN: Duration = Duration::from_secs(1);

/// A store that fails twice within this time for an unknown reason is dead and is not opened again.
const SOON: Duration = Duration::from_secs(60);

/// An operation in the queue, with any type of answer.
pub(crate) trait Queued: Send {
    /// The durability that the operation asks for.
    fn durability(&self) -> Durability;

    /// Runs the operation. Answers whether it wrote anything. An error here is an error of the store, after which the
    /// store takes no more writes.
    fn run(&mut self, store: &SingleWriterTxDatabase, spaces: &Spaces) -> fjall::Result<bool>;

    /// Answers the caller when the group has ended: with the result and the group's number, or with the error of the
    /// operation or of the group.
    fn answer(self: Box<Self>, ended: &Result<u64>);
}

/// An operation, and the channel to the caller that waits for it.
pub(crate) struct Pending<T> {
    pub(crate) request: Request<T>,
    pub(crate) outcome: Option<Result<T>>,
    pub(crate) asker: oneshot::Sender<Result<(T, u64)>>,
    pub(crate) weight: Weight,
}

/// A part of the queue's bytes, which is given back when this value is dropped.
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

    fn run(&mut self, store: &SingleWriterTxDatabase, spaces: &Spaces) -> fjall::Result<bool> {
        // An operation whose caller has gone away is not run: this keeps an overloaded queue useful.
        let Some(op) = self.request.op.take().filter(|_| !self.asker.is_closed()) else { return Ok(false) };
        let mut tx = Tx::begin(store, spaces);
        let done = op(&mut tx);
        let wrote = if done.is_ok() { tx.commit()? } else { false };
        self.outcome = Some(done);
        Ok(wrote)
    }

    fn answer(self: Box<Self>, ended: &Result<u64>) {
        let Self { request, outcome, asker, weight } = *self;
        let answer = match (outcome, ended) {
            (Some(Ok(value)), Ok(group)) => {
                if let Some(then) = request.then {
                    then(&value);
                }
                Ok((value, *group))
            }
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(_)) | None, Err(error)) => Err(error.clone()),
            (None, Ok(_)) => return,
        };
        drop(weight);
        // Sending fails if the caller has gone away. The operation has happened nevertheless.
        let _ = asker.send(answer);
    }
}

/// The state of the writer, which lives on the writer's thread.
pub(crate) struct Writer {
    pub(crate) files: Files,
    /// The open store; `None` while it cannot be opened.
    pub(crate) store: Option<Store>,
    pub(crate) queue: Receiver<Box<dyn Queued>>,
    /// The view that every reader gets; none while the store is opened again.
    pub(crate) published: Arc<ArcSwapOption<View>>,
    /// Whether something was committed since the last sync.
    pub(crate) unsynced: bool,
    /// How many groups have ended.
    pub(crate) group: u64,
    pub(crate) vital: Arc<Vital>,
    /// When the store was last opened again after a failure.
    pub(crate) reopened: Option<Instant>,
    /// When the writer next looks at the state of the store.
    pub(crate) look: Instant,
}

impl Writer {
    /// Works until every sender is gone and the queue is empty.
    pub(crate) fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        loop {
            match self.queue.recv_timeout(LOOK) {
                Ok(first) => {
                    group.push(first);
                    group.extend(self.queue.try_iter().take(GROUP_MAX - 1));
                    let ended = self.commit(&mut group);
                    for op in group.drain(..) {
                        op.answer(&ended);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.look <= Instant::now() {
                self.look_after();
                self.look = Instant::now() + if self.vital.is_waiting() { AGAIN } else { LOOK };
            }
        }
        if let Some(Err(error)) = self.store.map(|store| store.db.persist(PersistMode::SyncAll)) {
            tracing::error!(%error, "the last sync of the store failed; what was accepted had its own");
        }
    }

    /// Runs the operations of one group and makes them durable. Answers the group's number; after that its callers may
    /// be answered.
    fn commit(&mut self, group: &mut [Box<dyn Queued>]) -> Result<u64> {
        let vital = self.vital.clone();
        let _working = vital.working();
        if vital.is_waiting() {
            vital.check()?;
        }
        vital.check_alive()?;
        self.write(group).map_err(|error| {
            self.fail(&error);
            vital.check().err().unwrap_or_else(|| StoreError::unavailable(&error).with_source(error))
        })
    }

    fn write(&mut self, group: &mut [Box<dyn Queued>]) -> fjall::Result<u64> {
        let Some(store) = &self.store else { return Err(Error::Poisoned) };
        let mut strictest = Durability::Buffered;
        let mut wrote = false;
        for op in group.iter_mut() {
            strictest = strictest.max(op.durability());
            wrote |= op.run(&store.db, &store.spaces)?;
        }
        self.unsynced |= wrote;
        self.settle(strictest, wrote, group.len())
    }

    /// Makes the group as durable as `strictest` says, and publishes the view that shows it.
    fn settle(&mut self, strictest: Durability, wrote: bool, ops: usize) -> fjall::Result<u64> {
        let Some(store) = &mut self.store else { return Err(Error::Poisoned) };
        if self.unsynced && strictest == Durability::Synced {
            store.db.persist(PersistMode::SyncData)?;
            store.answered.follow(store.db.inner().seqno())?;
            self.unsynced = false;
            self.group += 1;
            tracing::debug!(target: "feedgate::durable", group = self.group, ops, "synced");
        } else if wrote {
            store.db.persist(PersistMode::Buffer)?;
            self.group += 1;
        }
        if wrote {
            self.published.store(Some(Arc::new(store.view())));
        }
        Ok(self.group)
    }

    /// Checks whether one of fjall's own threads has failed, and opens a failed store again.
    fn look_after(&mut self) {
        if self.vital.is_waiting() {
            return self.reopen();
        }
        if let Some(store) = &self.store
            && self.vital.check_alive().is_ok()
            && let Err(error) = store.db.persist(PersistMode::Buffer)
        {
            self.fail(&error);
        }
    }

    /// Takes note of a failure. Nothing more is written until the store was opened again.
    fn fail(&mut self, error: &Error) {
        match error {
            Error::Poisoned => self.fail_in_background(),
            Error::Io(cause) | Error::Storage(LsmError::Io(cause)) => self.vital.fails("it cannot be written", cause),
            _ => self.vital.dies(format_args!("it cannot be written: {error}")),
        }
    }

    /// Takes note that one of fjall's own threads has failed, for the reason that fjall has logged, if it has.
    fn fail_in_background(&mut self) {
        match fjall_log::why_a_thread_failed() {
            Some(cause) => self.vital.fails("a write in the background has failed", &cause),
            None if self.reopened.is_none_or(|then| then.elapsed() > SOON) => {
                self.vital.waits("a write in the background has failed");
            }
            None => self.vital.dies("writes in the background fail again and again"),
        }
    }

    /// Opens the store again, if the disk has room.
    fn reopen(&mut self) {
        if let Err(error) = disk::has_room(self.files.dir(), ROOM) {
            return self.vital.fails("it cannot be written", &error);
        }
        self.published.store(None);
        self.store = None;
        match answered::lost(self.files.dir()) {
            Ok(None) => {}
            Ok(Some(lost)) => return self.vital.dies(lost),
            Err(error) => return self.vital.fails("it cannot be read", &error),
        }
        match self.files.open().and_then(Store::proven) {
            Ok(store) => {
                self.files.tell_reopened();
                self.published.store(Some(Arc::new(store.view())));
                (self.store, self.unsynced, self.reopened) = (Some(store), true, Some(Instant::now()));
                self.vital.is_well();
            }
            // A reader still holds a view of the old store, so the store cannot be opened yet.
            Err(Error::Locked) => {}
            Err(error) => self.fail(&error),
        }
    }
}
