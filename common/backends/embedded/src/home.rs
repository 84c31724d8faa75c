//! The five stores of one data directory, opened together.
//!
//! ```text
//!   <data>/lock       held while open: one process at a time
//!   <data>/manifest   what was there when it was last used
//!   <data>/archive    Archive, positions of devices
//!   <data>/inboxes    Inboxes
//! ```
//!
//! Opening compares what the Archive remembers of the inbox store with the files of the inbox store. An inbox store
//! that was lost or restored from a copy starts empty, and each inbox is rebuilt when its reader comes. An Archive that
//! has lost something is not opened, unless the caller accepts the loss; then every inbox is rebuilt.

use std::convert::Infallible;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use feedgate_common::accept::Policy;
use feedgate_common::archive::Epochs as _;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Archive, Doorbell, Inboxes, Jobs, Sessions};
use parking_lot::Mutex;

use crate::database::Database;
use crate::inboxes::{EmbeddedInboxes, Settings};
use crate::manifest::{Counters, Manifest};
use crate::request::Durability;
use crate::vital::Vital;
use crate::{EmbeddedArchive, EmbeddedDoorbell, EmbeddedJobs, EmbeddedSessions, Kept, answered};

/// How often a task checks whether the Archive has begun a new journal.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// The file in a data directory that is being restored. No server opens such a directory.
pub(crate) const UNFINISHED: &str = "restoring";

/// The options with which a data directory is opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Into how many buckets readers are divided. Only a new directory takes this number.
    pub buckets: u16,
    /// The configured rules for writes.
    pub policy: Policy,
    /// Whether to go on with what is left if the Archive has lost files or records.
    pub accept_loss: bool,
    /// How long, and how many, announcements for other programs are kept.
    pub kept: Kept,
}

impl Opening {
    /// The options with this number of buckets, and defaults for everything else.
    pub(crate) fn of(buckets: u16) -> Self {
        Self { buckets, policy: Policy::default(), accept_loss: false, kept: Kept::default() }
    }
}

/// The open stores of one data directory. They stay open, and the directory cannot be opened again, until the last
/// clone of each is dropped too.
pub struct Embedded {
    /// Items, outboxes, follow edges and events: the truth, from which inboxes are built.
    pub archive: Arc<dyn Archive>,
    /// The inboxes: each is the change log of one reader's feed.
    pub inboxes: Arc<dyn Inboxes>,
    /// The live sessions, and the positions of devices.
    pub sessions: Arc<dyn Sessions>,
    /// The queue of fan-out jobs, empty at first: a worker fills it with what is outstanding in the Archive.
    pub jobs: Arc<dyn Jobs>,
    /// Wakes the sessions within this process.
    pub doorbell: Arc<dyn Doorbell>,
    database: Arc<Database>,
    vitals: [Arc<Vital>; 2],
    dir: PathBuf,
    noted: Arc<Mutex<Manifest>>,
    lock: File,
}

impl Embedded {
    /// Opens or creates the stores in `dir`. Only a new directory takes `buckets`; an existing directory keeps its own
    /// number, and a warning says so.
    ///
    /// Blocks while logs are replayed: milliseconds for a small store, seconds for millions of entries.
    ///
    /// # Errors
    /// `Unavailable`, naming `dir`, if it cannot be used or another process has it open; `Corrupt` if what it holds is
    /// damaged. No stored data is changed then.
    pub fn open(dir: &Path, buckets: u16) -> Result<Self> {
        Self::open_with(dir, Opening::of(buckets))
    }

    /// Opens or creates the stores in `dir` as `opening` says. Blocks as [`Embedded::open`] does.
    ///
    /// # Errors
    /// The errors of [`Embedded::open`]. With `accept_loss` a lost file or record is no error; what is left is opened.
    pub fn open_with(dir: &Path, opening: Opening) -> Result<Self> {
        Self::open_of(dir, dir, opening)
    }

    /// Opens the stores in `dir`. They are those of `original`, or a copy of these stores that is to be looked at.
    pub(crate) fn open_of(dir: &Path, original: &Path, opening: Opening) -> Result<Self> {
        let lock = lock(dir)?;
        finished(dir)?;
        let place = dir.join("archive");
        let found = Manifest::read(dir)?;
        let missing = found.as_ref().and_then(|found| found.missing(&place));
        let missing = missing.map(|file| format!("{} is missing", file.display()));
        let mut lost = accept(opening, dir, missing)?;
        lost |= accept(opening, dir, answered::lost(&place).map_err(|error| unread(&place, error))?)?;
        let database = Database::open(&place).map_err(|error| unopened(&place, error))?;
        let Opening { buckets, policy, kept, .. } = opening;
        let settings = Settings { buckets, ..Settings::default() };
        let (archive, inboxes, epoch) = wait(async {
            let archive = EmbeddedArchive::open(database.clone(), buckets).await?;
            let archive = archive.with_policy(policy).with_kept(kept);
            if let Some(found) = &found {
                let behind = found.ahead_of(&archive.counters()?);
                let behind = behind.map(|what| format!("a part of {} is missing: {what}", place.display()));
                lost |= accept(opening, dir, behind)?;
                if lost {
                    archive.accept_loss(found.counter("epoch")).await?;
                }
            }
            let remembered = archive.incarnation()?;
            let (place, original) = (dir.join("inboxes"), original.join("inboxes"));
            let inboxes = EmbeddedInboxes::open_of(&place, &original, remembered.as_deref(), settings)?;
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
        let noted = note(dir, archive.counters()?)?;
        let vitals = [database.vital(), inboxes.vital()];
        Ok(Self {
            archive: Arc::new(archive),
            inboxes: Arc::new(inboxes),
            sessions: Arc::new(EmbeddedSessions::open(database.clone(), epoch)),
            jobs: Arc::new(EmbeddedJobs::default()),
            doorbell: Arc::new(EmbeddedDoorbell::default()),
            database,
            vitals,
            dir: dir.to_owned(),
            noted: Arc::new(Mutex::new(noted)),
            lock,
        })
    }

    /// Waits until a store is dead, and answers why: then only a new process can help. A store that waits for room on
    /// its disk is not dead; it goes on by itself. The server awaits this future as long as the server runs, since only
    /// this future notices a disk that hangs and notes a new journal in the manifest. The future does not keep the
    /// stores open. To drop it only stops the watching and noting.
    pub fn died(&self) -> impl Future<Output = Arc<str>> + Send + use<> {
        let ([database, inboxes], dir, noted) = (self.vitals.clone(), self.dir.clone(), self.noted.clone());
        async move {
            tokio::select! {
                why = database.died() => why,
                why = inboxes.died() => why,
                never = keep_noting(dir, noted) => match never {},
            }
        }
    }

    /// Brings everything to disk and gives up this handle. What was *accepted* is on disk already. This call adds
    /// finished events and positions of devices, which otherwise survive a crash of the process, but not of the
    /// machine.
    ///
    /// # Errors
    /// `Unavailable` or `Down` if the disk does not take it; the next start then repeats some work.
    pub async fn close(self) -> Result<()> {
        let counters = self.database.write(Durability::Synced, |tx| crate::archive::counters(tx)).await?;
        let Self { archive, inboxes, sessions, jobs, doorbell, database, dir, lock, noted, .. } = self;
        let close = move || {
            // Waits for the threads of the stores to end, if these were the last handles.
            drop((archive, inboxes, sessions, jobs, doorbell, database));
            // The task that notes new journals may be writing the same file.
            let mut noted = noted.lock();
            let written = note(&dir, counters).map(|manifest| *noted = manifest);
            drop(lock);
            written
        };
        tokio::task::spawn_blocking(close).await.map_err(|error| StoreError::unavailable(&error).with_source(error))?
    }
}

/// Writes a manifest of the Archive as it is now, and answers the manifest.
pub(crate) fn note(dir: &Path, counters: Counters) -> Result<Manifest> {
    let place = dir.join("archive");
    let manifest = Manifest::of(&place, counters).map_err(|error| {
        StoreError::unavailable(format_args!("cannot list {}: {error}", place.display())).with_source(error)
    })?;
    manifest.write(dir)?;
    Ok(manifest)
}

/// Writes a new manifest for each journal that the Archive begins. Never ends.
async fn keep_noting(dir: PathBuf, noted: Arc<Mutex<Manifest>>) -> Infallible {
    loop {
        tokio::time::sleep(NOTED_EVERY).await;
        let (dir, noted) = (dir.clone(), noted.clone());
        let note = move || {
            let mut noted = noted.lock();
            if let Some(followed) = noted.followed(&dir.join("archive"))
                && followed.write(&dir).is_ok()
            {
                *noted = followed;
            }
        };
        // A manifest that could not be written is written the next time.
        _ = tokio::task::spawn_blocking(note).await;
    }
}

/// Answers whether something is lost; `Corrupt` if there is a loss that the caller has not accepted.
fn accept(opening: Opening, dir: &Path, lost: Option<String>) -> Result<bool> {
    match lost {
        None => Ok(false),
        Some(lost) if opening.accept_loss => {
            tracing::warn!("{lost}; as accepted, the server goes on with what is left, and every feed is built again");
            Ok(true)
        }
        Some(lost) => Err(StoreError::corrupt(format_args!(
            "{lost}, and with it items, follows or users that were accepted. Stop, and restore {} as a whole from a copy; \
             or start once with --accept-loss, which goes on with what is left",
            dir.display()
        ))),
    }
}

/// `Corrupt` if a restore of `dir` is under way or was broken off.
fn finished(dir: &Path) -> Result<()> {
    if !dir.join(UNFINISHED).exists() {
        return Ok(());
    }
    Err(StoreError::corrupt(format_args!(
        "the data directory {} was to be restored, and that did not come to its end: empty it, and restore it again",
        dir.display()
    )))
}

fn unread(place: &Path, error: std::io::Error) -> StoreError {
    StoreError::unavailable(format_args!("cannot read {}: {error}", place.display())).with_source(error)
}

/// The error of an Archive that cannot be opened, with its directory and what to do.
fn unopened(place: &Path, error: StoreError) -> StoreError {
    let place = place.display();
    match error {
        StoreError::Corrupt(what) => StoreError::Corrupt(what.reworded(format_args!(
            "{place} cannot be opened: {what}; a journal (*.jnl) or a table (keyspaces/*/tables/*) in it is damaged or \
             missing, and the log says which. Restore the data directory as a whole from a copy; or move {place} away and \
             start once with --accept-loss, which begins without any item or follow"
        ))),
        StoreError::Unavailable(why) => {
            StoreError::Unavailable(why.reworded(format_args!("{place} cannot be opened: {why}")))
        }
        other => other,
    }
}

/// Makes the names of the stores' directories survive a loss of power. The stores sync what is in their directories,
/// not the names of the directories themselves.
pub(crate) fn make_names_durable(dir: &Path) -> Result<()> {
    let sync = |dir: &Path| File::open(dir).and_then(|dir| dir.sync_all());
    // A parent directory that may not be opened existed before.
    _ = dir.canonicalize().map(|dir| dir.parent().map(sync));
    sync(dir).map_err(|error| {
        StoreError::unavailable(format_args!("cannot sync {}: {error}", dir.display())).with_source(error)
    })
}

pub(crate) fn lock(dir: &Path) -> Result<File> {
    let unusable = |error: std::io::Error| {
        let unusable = format_args!("the data directory {} cannot be used: {error}", dir.display());
        StoreError::unavailable(unusable).with_source(error)
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

/// Waits on this thread, without a runtime, for a future that the stores' own threads complete.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
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
