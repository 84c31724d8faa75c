//! The three threads of the store: one writes the log, one applies steps, one writes snapshots.
//!
//! ```text
//!   callers ─▶ queue ─▶ LOG: a batch, one write, one fdatasync ─▶ APPLY: in order, answer ─▶ callers
//!             (bounded)        └ long since the last snapshot ──────▶ SNAPSHOT: bucket by bucket
//! ```
//!
//! Invariants: a step is applied only after the sync that made the step durable, so a read never shows a change that a
//! crash could take back. Steps are applied in the order of the log, so a replay gives the same state. While one batch
//! is applied, the next one is already written.
//!
//! A batch that could not be written because the disk is full, and was taken back from the file, is refused. The store
//! reports this until a batch is written again; if no other batch comes, the store tries an empty one. If it is unknown
//! what the disk holds, or a thread has panicked, the store is dead: it accepts nothing until the next opening, and
//! steps refused then may turn out to have happened.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::{fs, io};

use feedgate_common::error::{Result, StoreError};
use feedgate_common::failpoint;
use parking_lot::RwLock;
use tokio::sync::oneshot;

use super::bucket::{Answer, Bucket, Step};
use super::life::Life;
use super::load::Loaded;
use super::segment::{self, AppendError, Batch, Segment};
use super::{Settings, record, snapshot};
use crate::disk;
use crate::vital::{LOOK, Vital};

/// The most steps that may wait; when more come, callers are told to try again. A step of 1000 recipients is about 36
/// KB, so at most 37 MB wait.
const QUEUE: usize = 1024;

/// A batch is closed at this size in bytes, so that its first step does not wait too long for its last.
const BATCH_MAX: usize = 4 << 20;

/// A snapshot is due at the earliest when the log since the last snapshot is longer than the size of that snapshot
/// divided by this number. So a start has little log to replay, and snapshots write at most this many times the bytes
/// of the log.
const SNAPSHOT_SHARE: u64 = 4;

/// After how many ms a caller that found the queue full is told to try again.
const RETRY_AFTER_MS: u32 = 20;

/// The state that readers and the three threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dir: PathBuf,
    pub(super) buckets: Vec<RwLock<Bucket>>,
    /// The number of the last record applied; it is written under the lock of the record's bucket.
    applied: AtomicU64,
    pub(super) vital: Arc<Vital>,
    pub(super) syncs: AtomicU64,
    pub(super) logged: AtomicU64,
    snapshot_size: AtomicU64,
}

impl Shared {
    pub(super) fn new(dir: PathBuf, loaded: Loaded) -> Self {
        Self {
            dir,
            buckets: loaded.buckets.into_iter().map(RwLock::new).collect(),
            applied: AtomicU64::new(loaded.next - 1),
            vital: Vital::new("the inboxes"),
            syncs: AtomicU64::new(0),
            logged: AtomicU64::new(0),
            snapshot_size: AtomicU64::new(loaded.snapshot_size),
        }
    }

    fn stopped(&self) -> StoreError {
        self.vital.check().err().unwrap_or_else(|| StoreError::unavailable("the inbox store has stopped"))
    }
}

type Reply = oneshot::Sender<Result<Answer>>;
type Done = SyncSender<io::Result<()>>;

enum Request {
    Step { step: Step, bytes: Vec<u8>, reply: Reply },
    Snapshot(Done),
}

enum Durable {
    Steps { first: u64, steps: Vec<(Step, Reply)> },
    Snapshot(Option<Done>),
}

/// The way of a step into the store. Dropping the pipeline finishes the accepted steps and ends the threads.
#[derive(Debug)]
pub(super) struct Pipeline {
    shared: Arc<Shared>,
    queue: Option<SyncSender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pipeline {
    /// Starts the threads. `log_size` is the size of the log before `segment`, in bytes.
    pub(super) fn start(shared: Arc<Shared>, life: Life, settings: Settings, segment: Segment, log_size: u64) -> Self {
        let next = shared.applied.load(Ordering::Acquire) + 1;
        let (queue, requests) = sync_channel(QUEUE);
        let (to_apply, durable) = sync_channel(1);
        let (to_snapshot, due) = sync_channel(1);
        let log = Log { shared: shared.clone(), life, settings, segment, next, since_snapshot: log_size, to_apply };
        let (applying, id) = ((shared.clone(), to_snapshot), life.id);
        let snapshotting = shared.clone();
        let threads = [
            shared.vital.spawn("inbox-log", move || log.run(&requests)),
            shared.vital.spawn("inbox-apply", move || apply_all(&applying.0, &durable, &applying.1)),
            shared.vital.spawn("inbox-snapshot", move || snapshot_all(&snapshotting, id, &due)),
        ]
        .map(|thread| thread.expect("the system gives three threads at start"));
        let threads = threads.into();
        Self { shared, queue: Some(queue), threads }
    }

    /// Logs and applies a step. If the future is dropped, the step may or may not happen, but never in part.
    pub(super) async fn take(&self, step: Step, bytes: Vec<u8>) -> Result<Answer> {
        let (reply, answer) = oneshot::channel();
        match self.queue().try_send(Request::Step { step, bytes, reply }) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(self.shared.stopped())),
            Err(TrySendError::Full(_)) => Err(StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS }),
            Err(TrySendError::Disconnected(_)) => Err(self.shared.stopped()),
        }
    }

    /// Writes a snapshot of every bucket and removes the log before it. Blocks.
    pub(super) fn snapshot(&self) -> Result<()> {
        let (done, waits) = sync_channel(1);
        self.queue().send(Request::Snapshot(done)).map_err(|_| self.shared.stopped())?;
        waits.recv().map_err(|_| self.shared.stopped())?.map_err(StoreError::unavailable)
    }

    fn queue(&self) -> &SyncSender<Request> {
        self.queue.as_ref().expect("only drop takes the queue")
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A panic of the thread was logged when it happened.
            _ = thread.join();
        }
    }
}

/// The state of the thread that writes the log.
struct Log {
    shared: Arc<Shared>,
    life: Life,
    settings: Settings,
    segment: Segment,
    /// The number that the next record gets.
    next: u64,
    since_snapshot: u64,
    to_apply: SyncSender<Durable>,
}

impl Log {
    /// Works until the last caller has gone, or the disk cannot be trusted.
    fn run(mut self, requests: &Receiver<Request>) {
        let mut batch = Batch::new();
        loop {
            let request = match requests.recv_timeout(LOOK) {
                Ok(request) => request,
                Err(RecvTimeoutError::Timeout) if !self.shared.vital.is_waiting() => continue,
                // An empty batch shows whether there is room again.
                Err(RecvTimeoutError::Timeout) if self.commit(&mut batch, vec![]) => continue,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            };
            let (mut steps, mut snapshot) = (Vec::new(), None);
            let mut request = Some(request);
            while let Some(taken) = request.take() {
                match taken {
                    Request::Step { step, bytes, reply } => {
                        batch.push(&bytes);
                        steps.push((step, reply));
                    }
                    Request::Snapshot(done) => snapshot = Some(done),
                }
                if snapshot.is_none() && batch.len() < BATCH_MAX {
                    request = requests.try_recv().ok();
                }
            }
            if !steps.is_empty() && !self.commit(&mut batch, steps) {
                return;
            }
            batch.clear();
            if !self.turn(snapshot) {
                return;
            }
        }
    }

    /// Makes a batch durable and passes it on to be applied. Answers false if nothing may be written after it.
    fn commit(&mut self, batch: &mut Batch, steps: Vec<(Step, Reply)>) -> bool {
        let vital = self.shared.vital.clone();
        let _working = vital.working();
        let bytes = batch.seal(self.next);
        match self.segment.append(bytes) {
            Ok(()) => {
                vital.is_well();
                failpoint::hit("step-logged");
                self.shared.syncs.fetch_add(1, Ordering::Relaxed);
                self.shared.logged.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.since_snapshot += bytes.len() as u64;
                self.life.used = self.life.opens;
                let first = self.next;
                self.next += steps.len() as u64;
                self.to_apply.send(Durable::Steps { first, steps }).is_ok()
            }
            Err(AppendError::Undone(e)) => {
                vital.fails("the log cannot be written", &e);
                for (_, reply) in steps {
                    _ = reply.send(Err(self.shared.stopped()));
                }
                vital.check_alive().is_ok()
            }
            Err(AppendError::Unknown(e)) => {
                self.give_up(&e);
                for (_, reply) in steps {
                    _ = reply.send(Err(self.shared.stopped()));
                }
                false
            }
        }
    }

    fn give_up(&self, cause: &io::Error) {
        self.shared.vital.dies(format_args!("it is not known what the disk holds of the log: {cause}"));
    }

    /// Begins a new segment if one is due, and asks for a snapshot if one is due. Answers false if nothing may be
    /// written after that.
    fn turn(&mut self, asked: Option<Done>) -> bool {
        let snapshots = self.shared.snapshot_size.load(Ordering::Relaxed);
        let behind = self.settings.snapshot_after.max(snapshots / SNAPSHOT_SHARE);
        let due = asked.is_some() || self.since_snapshot > behind;
        // An empty segment is the new one already. To write it again changes nothing, and fails on a full disk.
        let is_empty = self.segment.len() == segment::HEADER as u64;
        if !is_empty && (due || self.segment.len() > self.settings.segment_max) {
            match Segment::create(&self.shared.dir, &self.life.header(self.next)) {
                Ok(segment) => self.segment = segment,
                Err(AppendError::Undone(e)) => {
                    tracing::warn!("no new segment of the inbox log: {e}; the old one grows on");
                }
                Err(AppendError::Unknown(e)) => {
                    self.give_up(&e);
                    return false;
                }
            }
        }
        if due {
            self.since_snapshot = 0;
            _ = self.to_apply.send(Durable::Snapshot(asked));
        }
        true
    }
}

/// Runs the thread that applies steps once they are durable, and answers their callers.
fn apply_all(shared: &Shared, durable: &Receiver<Durable>, to_snapshot: &SyncSender<Option<Done>>) {
    let buckets = shared.buckets.len() as u16;
    while let Ok(durable) = durable.recv() {
        match durable {
            Durable::Steps { first, steps } => {
                for ((step, reply), number) in steps.into_iter().zip(first..) {
                    let mut bucket = shared.buckets[usize::from(record::bucket_of(&step, buckets).0)].write();
                    let answer = bucket.apply(step);
                    bucket.position = number;
                    shared.applied.store(number, Ordering::Release);
                    drop(bucket);
                    _ = reply.send(Ok(answer));
                }
            }
            Durable::Snapshot(Some(done)) => _ = to_snapshot.send(Some(done)),
            // A snapshot that is asked for already, or is being written, serves for this request too.
            Durable::Snapshot(None) => _ = to_snapshot.try_send(None),
        }
    }
}

/// Runs the thread that writes snapshots.
fn snapshot_all(shared: &Shared, id: u128, due: &Receiver<Option<Done>>) {
    while let Ok(done) = due.recv() {
        let written = write_snapshots(shared, id);
        if let Err(e) = &written {
            tracing::warn!("no snapshot of the inboxes: {e}; the log stays as long as it is");
        }
        if let Some(done) = done {
            _ = done.send(written);
        }
    }
}

fn write_snapshots(shared: &Shared, id: u128) -> io::Result<()> {
    let (mut size, mut covered) = (0, u64::MAX);
    for (number, bucket) in shared.buckets.iter().enumerate() {
        // The copy shares the packed changes, so the lock is held for milliseconds only.
        let copy = {
            let bucket = bucket.read();
            let applied = shared.applied.load(Ordering::Acquire);
            Bucket { position: applied, ..bucket.clone() }
        };
        covered = covered.min(copy.position);
        size += snapshot::write(&shared.dir, id, number, &copy)?;
        failpoint::hit("inbox-snapshot-written");
    }
    shared.snapshot_size.store(size, Ordering::Relaxed);
    let segments = segment::list(&shared.dir).map_err(io::Error::other)?;
    for (this, next) in segments.iter().zip(segments.iter().skip(1)) {
        if next.0 <= covered + 1 {
            fs::remove_file(&this.1)?;
        }
    }
    disk::sync_dir(&shared.dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inboxes::{life, load};
    use feedgate_common::{Epoch, InboxKey, UserNo};

    #[tokio::test]
    async fn a_disk_that_fails_refuses_that_step_and_every_later_one_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let life = life::next(dir.path(), dir.path(), None, 1).unwrap();
        Segment::create(dir.path(), &life.header(1)).unwrap();
        let segment = Segment::read_only(&segment::list(dir.path()).unwrap()[0].1);
        let shared = Arc::new(Shared::new(dir.path().to_owned(), load::load(dir.path(), &life).unwrap()));
        let pipeline = Pipeline::start(shared.clone(), life, Settings::default(), segment, 0);
        let step = Step::Begin { key: InboxKey::main(UserNo(1)), placeholder: Epoch(1) };
        for _ in 0..2 {
            let refused = pipeline.take(step.clone(), record::encode(&step, 1)).await;
            let Err(StoreError::Down(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("the process has to start again"), "{why}");
        }
        assert!(shared.buckets[0].read().placeholders.is_empty());
    }
}
