//! The store under the Archive, the jobs and the device positions: one fjall database, one writer.
//!
//! ```text
//!   task ── write(op) ──▶ bounded queue ──▶ writer thread ──▶ journal, synced once per group
//!   task ── view() ──────────────────────▶ the snapshot published after the last group
//! ```
//!
//! Invariants:
//! - Only the writer thread writes, so an operation reads, decides and writes with nobody between.
//! - A view holds finished groups only: no reader sees what a crash could take back.
//! - The queue has a bound in operations and in bytes; beyond it a write is refused, not delayed.
//!
//! fjall blocks the thread that commits when its background flushes fall behind (the fourth sealed
//! write buffer, or twenty runs in level 0). That thread is the writer and nobody else: tasks go
//! on reading, writes wait in the queue, and when it is full they are answered `Overloaded`.
//!
//! A store that has failed says why, opens again once that can help, or ends the process (the file `writer.rs` tells how).
//! Reads go on from the last view until then.
//!
//! A limit: what a crash left incomplete at the journal's end is dropped on opening, but if a loss of
//! power wrote the end of an operation that was not synced and not its middle, fjall takes it for
//! damage and opening answers `Corrupt`. It had not been promised to survive that; a human still has to
//! look.
//!
//! Reads do block the calling task, but briefly: write buffers and cached blocks answer in
//! microseconds, a range of 1000 rows in about a millisecond. What may read more goes through
//! [`Database::read`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use feedgate_common::StoreError;
use feedgate_common::error::Result;
use tokio::sync::oneshot;

use crate::files::Files;
use crate::view::{Tx, View, store_error};
use crate::vital::Vital;
use crate::writer::{Pending, Queued, Weight, Writer};

/// When a refused write is likely to find room.
const RETRY_AFTER_MS: u32 = 100;

/// How much may wait for the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Operations.
    pub ops: usize,
    /// Bytes they hold, all together.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ops: 4096, bytes: 256 << 20 }
    }
}

/// What an operation must survive before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// A crash of the process: the operating system has it. For what costs only repeated work when
    /// the machine loses power.
    Buffered,
    /// A crash of the machine: the disk has it. For everything that is accepted.
    Synced,
}

type Op<T> = Box<dyn FnOnce(&mut Tx<'_>) -> Result<T> + Send>;
type Then<T> = Box<dyn FnOnce(&T) + Send>;

/// An operation to queue; see [`Database::submit`].
pub struct Request<T> {
    pub(crate) durability: Durability,
    pub(crate) bytes: usize,
    pub(crate) op: Option<Op<T>>,
    pub(crate) then: Option<Then<T>>,
}

impl<T> Request<T> {
    /// `op` reads, decides and writes, on the writer thread. An error undoes its writes.
    pub fn new(durability: Durability, op: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static) -> Self {
        Self { durability, bytes: 0, op: Some(Box::new(op)), then: None }
    }

    /// About how many bytes of memory it holds while it waits.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// `then` runs on the writer thread after the result is visible to every reader and before it
    /// is answered, even if the asker was cancelled meanwhile: the place to drop cached rows.
    pub fn then(mut self, then: impl FnOnce(&T) + Send + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }
}

/// See the module. Dropping it carries out what is queued, syncs and joins the writer, which blocks
/// for as long as that takes.
pub struct Database {
    queue: Option<SyncSender<Box<dyn Queued>>>,
    queued_bytes: Arc<AtomicUsize>,
    limits: Limits,
    published: Arc<ArcSwapOption<View>>,
    vital: Arc<Vital>,
    files: Files,
    writer: Option<JoinHandle<()>>,
}

impl Database {
    /// Opens or creates the store in `dir`. Blocks while journals are replayed.
    ///
    /// Errors: `Unavailable` if the directory cannot be used or another process has it open,
    /// `Corrupt` if what it holds is damaged.
    pub fn open(dir: &Path) -> Result<Arc<Self>> {
        Self::open_with(dir, Limits::default())
    }

    /// The same with bounds of the caller's choice.
    pub fn open_with(dir: &Path, limits: Limits) -> Result<Arc<Self>> {
        let files = Files::new(dir);
        let store = files.open().map_err(store_error)?;
        let published = Arc::new(ArcSwapOption::from_pointee(store.view()));
        let vital = Vital::new("the archive");
        let (queue, receiver) = sync_channel(limits.ops);
        let writer = Writer {
            files: files.clone(),
            store: Some(store),
            queue: receiver,
            published: published.clone(),
            unsynced: true,
            group: 0,
            vital: vital.clone(),
            reopened: None,
            look: Instant::now(),
        };
        let writer = vital.spawn("archive-writer", move || writer.run()).map_err(StoreError::unavailable)?;
        let (queue, queued_bytes, writer) = (Some(queue), Arc::default(), Some(writer));
        Ok(Arc::new(Self { queue, queued_bytes, limits, published, vital, files, writer }))
    }

    /// Whether it works.
    ///
    /// # Errors
    /// `Down` with the reason.
    pub(crate) fn ping(&self) -> Result<()> {
        self.vital.check()
    }

    /// How it is.
    pub(crate) fn vital(&self) -> Arc<Vital> {
        self.vital.clone()
    }

    /// `then` runs each time the store was opened again after a failure, before anybody reads it.
    pub(crate) fn when_reopened(&self, then: impl Fn(&View) -> Result<()> + Send + 'static) {
        self.files.when_reopened(then);
    }

    /// The store as the last finished group left it. Take one per call, so that the call reads one
    /// snapshot.
    ///
    /// # Errors
    /// `Down` for the moment in which a store that has failed is opened again.
    pub fn view(&self) -> Result<Arc<View>> {
        self.published.load_full().ok_or_else(|| self.stopped())
    }

    /// Reads on a thread that may block, for what may touch many thousand rows.
    pub async fn read<T: Send + 'static>(&self, read: impl FnOnce(&View) -> Result<T> + Send + 'static) -> Result<T> {
        let view = self.view()?;
        tokio::task::spawn_blocking(move || read(&view)).await.map_err(StoreError::unavailable)?
    }

    /// Carries out `op` alone in the store and answers once the result is durable as asked and
    /// every new [`Database::view`] shows it.
    ///
    /// `op` sees what every operation before it wrote, durable yet or not; its own writes become
    /// part of the store all together or, if it fails, not at all. It runs on the writer thread
    /// and must not wait for anything.
    ///
    /// Errors: whatever `op` answers; `Overloaded` if the queue is full, and then nothing was
    /// written; `Down` after a failed write to disk, and then it may or may not have
    /// happened. Cancelled, it may or may not happen.
    pub async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        op: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.submit(Request::new(durability, op)).await
    }

    /// [`Database::write`] with all that can be said about it.
    pub async fn submit<T: Send + 'static>(&self, request: Request<T>) -> Result<T> {
        let (asker, answer) = oneshot::channel();
        let weight = self.weigh(request.bytes)?;
        let durability = request.durability;
        let queue = self.queue.as_ref().expect("only drop takes the queue");
        queue.try_send(Box::new(Pending { request, asker, outcome: None, weight })).map_err(
            |refused| match refused {
                TrySendError::Full(_) => overloaded(),
                TrySendError::Disconnected(_) => self.stopped(),
            },
        )?;
        let (value, group) = answer.await.map_err(|_| self.stopped())??;
        tracing::debug!(target: "feedgate::durable", group, ?durability, "answered");
        Ok(value)
    }

    /// Why there is no answer.
    fn stopped(&self) -> StoreError {
        self.vital.check().err().unwrap_or_else(|| StoreError::unavailable("the store's writer has stopped"))
    }

    fn weigh(&self, bytes: usize) -> Result<Weight> {
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let weight = Weight { bytes, total: self.queued_bytes.clone() };
        // One operation larger than the bound may still pass, alone.
        let fits = before == 0 || before.saturating_add(bytes) <= self.limits.bytes;
        fits.then_some(weight).ok_or_else(overloaded)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.queue.take());
        let Some(writer) = self.writer.take() else { return };
        // An operation may hold the last reference; its thread ends by itself.
        if writer.thread().id() != std::thread::current().id() {
            // A panic was told when it happened.
            _ = writer.join();
        }
    }
}

fn overloaded() -> StoreError {
    StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS }
}

#[cfg(test)]
mod tests;
