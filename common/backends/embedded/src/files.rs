//! The files of the store under the Archive, and how they are opened: at the start, and again after a failure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{KeyspaceCreateOptions, PersistMode, SingleWriterTxDatabase};
use parking_lot::Mutex;

use crate::answered::Answered;
use crate::table::Space;
use crate::view::{Spaces, View};
use crate::{disk, fjall_log};

/// How many bytes of journals may be on disk before old write buffers are flushed. This bounds the time that opening
/// takes to replay journals. Measured after 140,000 publishes: opening took 0.4 s with 64 MiB and 1.5 s with 128 MiB.
const JOURNAL_BYTES: u64 = 64 << 20;

/// The write buffer of each tree, in bytes.
const BUFFER_BYTES: u64 = 16 << 20;

/// How many bytes of table blocks are kept in memory.
const CACHE_BYTES: u64 = 64 << 20;

/// How many table files are kept open; any other table file is opened for each read. Servers leave room for these file
/// descriptors.
const OPEN_TABLES: usize = 128;

/// A key that stands in no table, since no table has the tag 0.
const NOWHERE: [u8; 1] = [0];

/// Called after the store was opened again. Until then, memory may hold values of operations that were refused.
type Reopened = Box<dyn Fn() + Send>;

/// The directory of the store, and the callbacks for when it was opened again.
#[derive(Clone)]
pub(crate) struct Files {
    dir: PathBuf,
    reopened: Arc<Mutex<Vec<Reopened>>>,
}

/// The open store, with all its trees.
pub(crate) struct Store {
    pub(crate) db: SingleWriterTxDatabase,
    pub(crate) spaces: Spaces,
    /// Up to where the journals were answered.
    pub(crate) answered: Answered,
}

impl Store {
    /// A snapshot of the store at this moment.
    pub(crate) fn view(&self) -> View {
        View { snapshot: self.db.read_tx(), spaces: self.spaces.clone() }
    }

    /// Removes a key that does not exist, and syncs. Gives the store back if both succeed: then the disk takes writes
    /// again.
    pub(crate) fn proven(self) -> fjall::Result<Self> {
        let mut tx = self.db.write_tx();
        tx.remove(&self.spaces[Space::Positions as usize], NOWHERE);
        tx.commit()?;
        self.db.persist(PersistMode::SyncData)?;
        Ok(self)
    }
}

impl Files {
    pub(crate) fn new(dir: &Path) -> Self {
        fjall_log::listen();
        Self { dir: dir.to_owned(), reopened: Arc::default() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes `then` run each time the store was opened again, before anybody reads from the store.
    pub(crate) fn when_reopened(&self, then: impl Fn() + Send + 'static) {
        self.reopened.lock().push(Box::new(then));
    }

    pub(crate) fn tell_reopened(&self) {
        self.reopened.lock().iter().for_each(|then| then());
    }

    /// Opens or creates the store. Blocks while journals are replayed. The journals are read from the disk, not from
    /// the system's cache.
    pub(crate) fn open(&self) -> fjall::Result<Store> {
        if let Ok(entries) = fs::read_dir(&self.dir) {
            for entry in entries {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "jnl") {
                    disk::settle(&File::open(path)?)?;
                }
            }
        }
        // The writer thread decides when the journal is handed to the system and when it is synced.
        let db = SingleWriterTxDatabase::builder(&self.dir)
            .manual_journal_persist(true)
            .max_journaling_size(JOURNAL_BYTES)
            .cache_size(CACHE_BYTES)
            .max_cached_files(Some(OPEN_TABLES))
            .open()?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(BUFFER_BYTES);
        let open = |space: Space| db.keyspace(space.name(), options);
        let [archive, items, positions] = Space::ALL;
        let spaces = Arc::new([open(archive)?, open(items)?, open(positions)?]);
        Ok(Store { db, spaces, answered: Answered::open(&self.dir)? })
    }
}
