//! The store under the Archive and the positions of devices: one fjall database with one writer thread.
//!
//! ```text
//!   task ── write(op) ──▶ bounded queue ──▶ writer thread ──▶ journal, synced once per group
//!   task ── view() ──────────────────────▶ the snapshot published after the last group
//! ```
//!
//! Invariants:
//! - Only the writer thread writes. So nothing changes between what an operation reads and what it writes.
//! - A view holds finished groups only: no reader sees a write that a crash could take back.
//! - The queue has a bound in operations and in bytes. Beyond it a write is refused at once and does not wait.
//!
//! fjall blocks the thread that commits when its background flushes fall behind (the fourth sealed
//! write buffer, or twenty runs in level 0). That thread is the writer and nobody else: tasks go
//! on reading, writes wait in the queue, and when it is full they are answered `Overloaded`.
//!
//! A store that has failed says why. The store is opened again once that can help, else the process ends (the file
//! `writer.rs` tells how). Until then reads go on from the last view.
//!
//! Before a store is opened, its journals are read, because fjall silently drops everything behind damaged bytes. A
//! store that has lost data that was answered as durable is refused (the files `journal.rs` and `answered.rs`).
//!
//! A limit: opening drops what a crash left incomplete at the journal's end. But if a loss of power left the end of an
//! unsynced operation on the disk without its middle, fjall takes this for damage, and opening answers `Corrupt`. That
//! operation was not answered as durable; still, a human has to look.
//!
//! Reads block the calling task, but briefly: a row in write buffers or cached blocks takes microseconds, a range of
//! 1000 rows about a millisecond. A read that may touch more goes through [`Database::read`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use feedgate_common::StoreError;
use feedgate_common::error::Result;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::files::Files;
use crate::request::{Durability, Request};
use crate::view::{Tx, View, store_error};
use crate::vital::Vital;
use crate::writer::{Pending, Queued, Weight, Writer};

/// After how many ms a caller whose write was refused is told to try again.
const RETRY_AFTER_MS: u32 = 100;

/// How much may wait in the queue of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many operations may wait.
    pub ops: usize,
    /// How many bytes all waiting operations may hold together.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ops: 4096, bytes: 256 << 20 }
    }
}

/// A handle of the open store. Dropping it carries out what is queued, syncs the disk and waits for the writer thread
/// to end; that blocks for as long as the work takes.
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
    /// Opens or creates the store in `dir`, with the default bounds of the queue. Blocks while journals are replayed.
    ///
    /// Errors: `Unavailable` if the directory cannot be used or another process has it open,
    /// `Corrupt` if what it holds is damaged.
    pub fn open(dir: &Path) -> Result<Arc<Self>> {
        Self::open_with(dir, Limits::default())
    }

    /// Opens or creates the store in `dir`, with `limits` as the bounds of the queue. Blocks, and fails, as
    /// [`Database::open`] does.
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

    /// Answers `Ok` if the store can read and write now.
    ///
    /// # Errors
    /// `Down` with the reason, if it cannot.
    pub(crate) fn ping(&self) -> Result<()> {
        self.vital.check()
    }

    /// The state of the store: well, waiting or dead.
    pub(crate) fn vital(&self) -> Arc<Vital> {
        self.vital.clone()
    }

    /// Makes `then` run each time the store was opened again after a failure, before anybody reads from the store.
    pub(crate) fn when_reopened(&self, then: impl Fn() + Send + 'static) {
        self.files.when_reopened(then);
    }

    /// Runs what is to run when the store was opened again.
    #[cfg(test)]
    pub(crate) fn say_reopened(&self) {
        self.files.tell_reopened();
    }

    /// The store as the last finished group left it. A call takes one view and reads everything from that view, so that
    /// all rows are of one moment.
    ///
    /// # Errors
    /// `Down` during the moment in which a store that has failed is opened again.
    pub fn view(&self) -> Result<Arc<View>> {
        self.published.load_full().ok_or_else(|| self.stopped())
    }

    /// Runs `read` on a thread that may block: for reads of many thousand rows. If the future is dropped, `read` still
    /// runs to its end.
    pub async fn read<T: Send + 'static>(&self, read: impl FnOnce(&View) -> Result<T> + Send + 'static) -> Result<T> {
        let view = self.view()?;
        tokio::task::spawn_blocking(move || read(&view)).await.map_err(StoreError::unavailable)?
    }

    /// Runs `op` on the writer thread. Answers once its writes are as durable as asked and every new [`Database::view`]
    /// shows them.
    ///
    /// `op` sees what every earlier operation wrote, durable yet or not. The writes of `op` happen all together or, if
    /// `op` fails, not at all. `op` must not wait for anything, since the next operations wait for it.
    ///
    /// Errors: the error of `op`; `Overloaded` if the queue is full, and then nothing was written; `Down` after a
    /// failed write to disk, and then the operation may or may not have happened. If the future is dropped, the
    /// operation may or may not happen, but never in part.
    pub async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        op: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.submit(Request::new(durability, op)).await
    }

    /// Queues `request`. The answer, the errors and a dropped future are as in [`Database::write`].
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

    /// The error of a store whose writer gave no answer.
    fn stopped(&self) -> StoreError {
        self.vital.check().err().unwrap_or_else(|| StoreError::unavailable("the store's writer has stopped"))
    }

    fn weigh(&self, bytes: usize) -> Result<Weight> {
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let weight = Weight { bytes, total: self.queued_bytes.clone() };
        // An operation that is larger than the whole bound may pass when nothing else waits.
        let fits = before == 0 || before.saturating_add(bytes) <= self.limits.bytes;
        fits.then_some(weight).ok_or_else(overloaded)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.queue.take());
        let Some(writer) = self.writer.take() else { return };
        // This may run on the writer thread itself, if an operation held the last reference: a thread cannot join
        // itself.
        if writer.thread().id() != std::thread::current().id() {
            // A panic of the writer was logged when it happened.
            _ = writer.join();
        }
    }
}

fn overloaded() -> StoreError {
    StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS }
}

#[cfg(test)]
pub(crate) mod tests;
