//! All five stores of one data directory, opened together.
//!
//! ```text
//!   <data>/lock       held while open: one process at a time
//!   <data>/archive    Archive, Jobs, positions of devices
//!   <data>/inboxes    Inboxes
//! ```
//!
//! Opening compares what the Archive remembers of the inbox store with what is found there: one that was lost or
//! put back from a copy starts empty, and every inbox is rebuilt when its reader comes.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Archive, Doorbell, Inboxes, Jobs, Sessions};

use crate::database::{Database, Durability};
use crate::inboxes::{EmbeddedInboxes, Settings};
use crate::{EmbeddedArchive, EmbeddedDoorbell, EmbeddedJobs, EmbeddedSessions};

/// See the module. A store stays open, and refuses to be opened again, until its last clone is dropped too.
pub struct Embedded {
    /// The truth.
    pub archive: Arc<dyn Archive>,
    /// The change logs.
    pub inboxes: Arc<dyn Inboxes>,
    /// The session pool and device positions.
    pub sessions: Arc<dyn Sessions>,
    /// Fan-out work.
    pub jobs: Arc<dyn Jobs>,
    /// Wakes within this process.
    pub doorbell: Arc<dyn Doorbell>,
    database: Arc<Database>,
    _lock: File,
}

impl Embedded {
    /// Opens or makes the stores in `dir`. `buckets` counts for a new directory; one that exists keeps its own, and
    /// a warning says so.
    ///
    /// Blocks while logs are replayed: milliseconds for a small store, seconds for millions of entries.
    ///
    /// # Errors
    /// `Unavailable`, naming `dir`, if another process has it open or it cannot be used; `Corrupt` if what it holds
    /// cannot be what was written. Nothing is changed then.
    pub fn open(dir: &Path, buckets: u16) -> Result<Self> {
        Self::open_with(dir, buckets, DEFAULT_PULL_ABOVE)
    }

    /// The same with a number of followers of its own, above which the items of an author of class `auto` are pulled.
    ///
    /// # Errors
    /// Those of [`Embedded::open`].
    pub fn open_with(dir: &Path, buckets: u16, pull_above: u64) -> Result<Self> {
        let lock = lock(dir)?;
        let database = Database::open(&dir.join("archive"))?;
        let settings = Settings { buckets, ..Settings::default() };
        let (archive, inboxes, epoch) = wait(async {
            let archive = EmbeddedArchive::open(database.clone(), buckets).await?.with_pull_above(pull_above);
            let remembered = archive.incarnation()?;
            let inboxes = EmbeddedInboxes::open(&dir.join("inboxes"), remembered.as_deref(), settings)?;
            if inboxes.buckets() != buckets {
                let (dir, kept) = (dir.display(), inboxes.buckets());
                tracing::warn!(
                    "{dir} was made with buckets = {kept} and keeps them; buckets = {buckets} has no effect"
                );
            }
            make_names_durable(dir)?;
            archive.set_incarnation(&inboxes.incarnation()).await?;
            let epoch = archive.next_epoch().await?;
            Ok((archive, inboxes, epoch))
        })?;
        Ok(Self {
            archive: Arc::new(archive),
            inboxes: Arc::new(inboxes),
            sessions: Arc::new(EmbeddedSessions::open(database.clone(), epoch)),
            jobs: Arc::new(EmbeddedJobs::open(database.clone())?),
            doorbell: Arc::new(EmbeddedDoorbell::default()),
            database,
            _lock: lock,
        })
    }

    /// Brings everything to disk and gives up this handle. What was *accepted* is there already; this adds
    /// acknowledged jobs and device positions, which otherwise survive a crash of the process alone.
    ///
    /// # Errors
    /// `Unavailable` if the disk does not take it; the next start then repeats some work.
    pub async fn close(self) -> Result<()> {
        self.database.write(Durability::Synced, |_| Ok(())).await?;
        // Joins the stores' threads, if this was the last handle.
        tokio::task::spawn_blocking(move || drop(self)).await.map_err(StoreError::unavailable)
    }
}

/// What was just made must be found again after a loss of power: the stores see to what is in their directories,
/// not to the directories themselves.
fn make_names_durable(dir: &Path) -> Result<()> {
    let sync = |dir: &Path| File::open(dir).and_then(|dir| dir.sync_all());
    // A parent that may not be opened was there before.
    _ = dir.canonicalize().map(|dir| dir.parent().map(sync));
    sync(dir).map_err(|error| StoreError::unavailable(format_args!("cannot sync {}: {error}", dir.display())))
}

fn lock(dir: &Path) -> Result<File> {
    let unusable = |error: std::io::Error| {
        StoreError::unavailable(format_args!("the data directory {} cannot be used: {error}", dir.display()))
    };
    fs::create_dir_all(dir).map_err(unusable)?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
        Err(TryLockError::WouldBlock) => Err(StoreError::unavailable(format_args!(
            "the data directory {} is in use by another process; stop it, or choose another directory",
            dir.display()
        ))),
    }
}

/// Waits for what the stores' own threads answer, without a runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
