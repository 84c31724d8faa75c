//! The inboxes of one machine: their state is in memory, and a log on disk can build it again.
//!
//! ```text
//!   step ─▶ log (fdatasync) ─▶ apply ─▶ answer          pipeline   three threads
//!             │                  │                      segment    the log's files
//!             │                  └ bucket, inbox,       record     a step as bytes
//!             │                    changes: pure        snapshot   a bucket as a file
//!             └ snapshot + log ─▶ load ─▶ the same      life       is this still the same store?
//!                                                       expiry     what keeps inboxes, and what drops them
//! ```
//!
//! Invariants, besides those of [`Inboxes`]: the log holds the steps that were asked for, and what a step does depends
//! only on the steps before it. So a replay gives the same logs with the same sequence ids. A read takes a bucket's
//! lock for as long as it copies, and never waits for the disk.
//!
//! An inbox whose time is past is dropped as a whole when the caller asks for that (`expiry`).
//!
//! The state must fit in memory: an entry takes 8 to 17 bytes there (see `changes`), an inbox about
//! 250 more, an author who has ever published up to 50 in each bucket (its progress, never removed), and
//! on disk as much again.

mod bucket;
mod changes;
mod expiry;
mod inbox;
mod life;
mod load;
mod pipeline;
mod placeholder;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod snapshot;
mod until;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use async_trait::async_trait;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::{
    Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, InboxCounts, Log, Read, Stand, Take, Taken,
};
use feedgate_common::{Bucket, Epoch, InboxKey, Inboxes, Millis, Position, Progress, UserNo};
use parking_lot::RwLockReadGuard;

use bucket::{Answer, Step};
use inbox::Inbox;
use pipeline::{Pipeline, Shared};

use crate::vital::Vital;

/// The options with which a store is made and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The number of buckets of a *new* store, 1 at least; an existing store keeps its own number.
    pub buckets: u16,
    /// The size in bytes above which a new segment of the log is begun.
    pub segment_max: u64,
    /// Snapshots are due when the log since the last snapshots is longer than this, in bytes, and longer than a quarter
    /// of those snapshots.
    pub snapshot_after: u64,
}

/// How long the log may grow before snapshots are due, in bytes. A build with debug assertions writes
/// snapshots often, so that the crashes of tests fall on them too.
const SNAPSHOT_AFTER: u64 = if cfg!(debug_assertions) { 2 << 10 } else { 64 << 20 };

impl Default for Settings {
    fn default() -> Self {
        Self { buckets: 16, segment_max: 64 << 20, snapshot_after: SNAPSHOT_AFTER }
    }
}

/// How much was written since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// How often `fdatasync` was called on the log.
    pub syncs: u64,
    /// How many bytes were written to the log.
    pub bytes: u64,
}

/// The store of inboxes of one machine: it implements [`Inboxes`] with memory and a log on disk.
#[derive(Debug)]
pub struct EmbeddedInboxes {
    shared: Arc<Shared>,
    pipeline: Pipeline,
    incarnation: String,
    /// The bucket where the search for expired inboxes goes on.
    searched: AtomicU16,
    /// A locked file, held as long as this process may write.
    _lock: File,
}

impl EmbeddedInboxes {
    /// Opens the store in `dir`, or creates one there. Blocks for as long as reading it takes.
    ///
    /// `expected` is the incarnation that the Archive remembers. If the store that is found is another one, or not as
    /// the Archive last knew it, then it was lost or rolled back: the store starts with no inbox, under a new
    /// incarnation. In each case the caller tells the Archive the new [`incarnation`](Self::incarnation) before it uses
    /// the store; if the process dies in between, the next opening still finds everything.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset, if what is there is damaged; `Unavailable` if the directory cannot be used or
    /// another process has the store open.
    pub fn open(dir: &Path, expected: Option<&str>, settings: Settings) -> Result<Self> {
        Self::open_of(dir, dir, expected, settings)
    }

    /// Opens the store in `dir`, which is a copy of the one in `original`, or the same.
    pub(crate) fn open_of(dir: &Path, original: &Path, expected: Option<&str>, settings: Settings) -> Result<Self> {
        assert!(settings.buckets > 0, "a store has at least one bucket");
        fs::create_dir_all(dir).map_err(|e| segment::failed("make", dir, e))?;
        let lock = lock(dir)?;
        let life = life::next(dir, original, expected, settings.buckets)?;
        let loaded = load::load(dir, &life)?;
        let segment = segment::Segment::create(dir, &life.header(loaded.next));
        let (segment, log_size) = (segment.map_err(|e| segment::failed("write", dir, e))?, loaded.log_size);
        let shared = Arc::new(Shared::new(dir.to_owned(), loaded));
        let pipeline = Pipeline::start(shared.clone(), life, settings, segment, log_size);
        Ok(Self { shared, pipeline, incarnation: life.incarnation(), searched: AtomicU16::new(0), _lock: lock })
    }

    /// Identifies this life of the store. It differs from every earlier one, also after the store has lost or rolled
    /// back its state.
    pub fn incarnation(&self) -> String {
        self.incarnation.clone()
    }

    /// Writes a snapshot and removes the log before it, which makes the directory small and the next opening quick.
    /// Blocks; steps and reads go on meanwhile.
    ///
    /// # Errors
    /// `Unavailable` if the snapshot could not be written; nothing is lost then.
    pub fn compact(&self) -> Result<()> {
        self.pipeline.snapshot()
    }

    /// The state of the store: well, waiting or dead.
    pub(crate) fn vital(&self) -> Arc<Vital> {
        self.shared.vital.clone()
    }

    /// How much was written since the store was opened.
    pub fn written(&self) -> Written {
        Written { syncs: self.shared.syncs.load(Ordering::Relaxed), bytes: self.shared.logged.load(Ordering::Relaxed) }
    }

    fn bucket(&self, bucket: Bucket) -> RwLockReadGuard<'_, bucket::Bucket> {
        self.shared.buckets[usize::from(bucket.0)].read()
    }

    fn bucket_of(&self, key: InboxKey) -> RwLockReadGuard<'_, bucket::Bucket> {
        self.bucket(key.reader.bucket(self.buckets()))
    }

    /// Logs and applies a step. A step that would change nothing is answered at once, without the disk.
    async fn step(&self, step: Step) -> Result<Answer> {
        let refusal = self.bucket(record::bucket_of(&step, self.buckets())).refusal(&step);
        if let Some(refusal) = refusal {
            return Ok(refusal);
        }
        let bytes = record::encode(&step, self.buckets());
        self.pipeline.take(step, bytes).await
    }
}

/// Locks the directory `dir` for this process; `Unavailable` if another process has it open.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| segment::failed("open", &path, e))?;
    file.try_lock().map_err(|e| {
        StoreError::unavailable(format_args!("{} is in use by another process: {e}", dir.display())).with_source(e)
    })?;
    Ok(file)
}

#[async_trait]
impl Inboxes for EmbeddedInboxes {
    fn buckets(&self) -> u16 {
        self.shared.buckets.len() as u16
    }

    async fn ping(&self) -> Result<()> {
        self.shared.vital.check()
    }

    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        Ok(of.iter().map(|&(author, bucket)| self.bucket(bucket).progress(author)).collect())
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        step.check(self.buckets());
        // The embedded Archive keeps no recipients in memory, so only tests make such a step.
        if step.kept {
            return Ok(Advanced::Stale);
        }
        match self.step(Step::Advance(step)).await? {
            Answer::Advanced(advanced) => Ok(advanced),
            other => unreachable!("a push step answered {other:?}"),
        }
    }

    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>> {
        match self.step(Step::Edges(steps)).await? {
            Answer::EdgesStepped(stepped) => Ok(stepped),
            other => unreachable!("an edge step answered {other:?}"),
        }
    }

    async fn begin_build(&self, key: InboxKey, placeholder: Epoch) -> Result<Option<Begun>> {
        match self.step(Step::Begin { key, placeholder }).await? {
            Answer::Begun(begun) => Ok(begun),
            other => unreachable!("a build begun answered {other:?}"),
        }
    }

    async fn finish_build(&self, build: Build) -> Result<bool> {
        let until = expiry::kept_from_now(build.until).millis();
        match self.step(Step::Finish(Build { until, ..build })).await? {
            Answer::Finished(swapped) => Ok(swapped),
            other => unreachable!("a build finished answered {other:?}"),
        }
    }

    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        self.shared.vital.check_alive()?;
        Ok(self.bucket_of(key).inboxes.get(&key).map_or(Read::Missing, |inbox| inbox.read(after, limit)))
    }

    async fn log(&self, key: InboxKey) -> Result<Option<Log>> {
        self.shared.vital.check_alive()?;
        Ok(self.bucket_of(key).inboxes.get(&key).map(|inbox| inbox.log()))
    }

    async fn take(&self, step: Take) -> Result<Taken> {
        step.check();
        match self.step(Step::Take(step)).await? {
            Answer::Taken(taken) => Ok(taken),
            other => unreachable!("a take answered {other:?}"),
        }
    }

    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>> {
        self.shared.vital.check_alive()?;
        let stand = |inbox: &Inbox| Stand { head: inbox.head(), taken: inbox.taken };
        Ok(keys.iter().map(|key| self.bucket_of(*key).inboxes.get(key).map(|inbox| stand(inbox))).collect())
    }

    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        self.shared.vital.check_alive()?;
        let is_present = |key: &InboxKey| {
            let bucket = self.bucket_of(*key);
            bucket.inboxes.contains_key(key) || bucket.placeholders.contains_key(key)
        };
        Ok(keys.iter().copied().filter(is_present).collect())
    }

    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        self.keep(keys, until).await
    }

    async fn discard_expired(&self, now: Millis, limit: usize) -> Result<usize> {
        self.expire(now, limit).await
    }

    async fn discard(&self, key: InboxKey) -> Result<()> {
        match self.step(Step::Discard(key)).await? {
            Answer::Discarded => Ok(()),
            other => unreachable!("a discard answered {other:?}"),
        }
    }

    async fn counts(&self) -> Result<InboxCounts> {
        let add = |sum: InboxCounts, bucket: &bucket::Bucket| InboxCounts {
            inboxes: sum.inboxes + bucket.inboxes.len() as u64,
            entries: sum.entries + bucket.entries,
        };
        Ok(self.shared.buckets.iter().fold(InboxCounts::default(), |sum, bucket| add(sum, &bucket.read())))
    }
}

#[cfg(test)]
mod tests;
