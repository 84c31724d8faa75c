//! The files of the store under the Archive, and how they are opened: at the start, and again after a failure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use feedgate_common::error::Result;
use fjall::{KeyspaceCreateOptions, PersistMode, SingleWriterTxDatabase};
use parking_lot::Mutex;

use crate::table::Space;
use crate::view::{Spaces, View};
use crate::{disk, fjall_log};

/// Journals on disk before old write buffers are flushed; bounds how long opening replays. Measured
/// after 140,000 publishes: 0.4 s to open with 64 MiB, 1.5 s with 128.
const JOURNAL_BYTES: u64 = 64 << 20;

/// A tree's write buffer.
const BUFFER_BYTES: u64 = 16 << 20;

/// Blocks of tables kept in memory.
const CACHE_BYTES: u64 = 64 << 20;

/// Tables that are kept open; another is opened anew for each look. Servers leave room for these descriptors.
const OPEN_TABLES: usize = 128;

/// A key that no table has: the tag of none.
const NOWHERE: [u8; 1] = [0];

/// Told of the store as it is after it was opened again: what memory knows of operations that were refused may be wrong.
type Reopened = Box<dyn Fn(&View) -> Result<()> + Send>;

/// See the module.
#[derive(Clone)]
pub(crate) struct Files {
    dir: PathBuf,
    reopened: Arc<Mutex<Vec<Reopened>>>,
}

/// The store, open.
pub(crate) struct Store {
    pub(crate) db: SingleWriterTxDatabase,
    pub(crate) spaces: Spaces,
}

impl Store {
    /// As it is now.
    pub(crate) fn view(&self) -> View {
        View { snapshot: self.db.read_tx(), spaces: self.spaces.clone() }
    }

    /// Writes something that changes nothing, syncs it, and gives the store back: its disk takes writes again.
    pub(crate) fn proven(self) -> fjall::Result<Self> {
        let mut tx = self.db.write_tx();
        tx.remove(&self.spaces[Space::Jobs as usize], NOWHERE);
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

    /// `then` runs each time the store was opened again, before anybody reads it.
    pub(crate) fn when_reopened(&self, then: impl Fn(&View) -> Result<()> + Send + 'static) {
        self.reopened.lock().push(Box::new(then));
    }

    pub(crate) fn tell_reopened(&self, view: &View) -> Result<()> {
        self.reopened.lock().iter().try_for_each(|then| then(view))
    }

    /// Opens or makes the store. Blocks while journals are replayed, as the disk has them.
    pub(crate) fn open(&self) -> fjall::Result<Store> {
        if let Ok(entries) = fs::read_dir(&self.dir) {
            for entry in entries {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "jnl") {
                    disk::settle(&File::open(path)?)?;
                }
            }
        }
        // The writer decides when the journal's buffer goes to the system and to the disk.
        let db = SingleWriterTxDatabase::builder(&self.dir)
            .manual_journal_persist(true)
            .max_journaling_size(JOURNAL_BYTES)
            .cache_size(CACHE_BYTES)
            .max_cached_files(Some(OPEN_TABLES))
            .open()?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(BUFFER_BYTES);
        let open = |space: Space| db.keyspace(space.name(), options);
        let [archive, items, jobs, positions] = Space::ALL;
        let spaces = Arc::new([open(archive)?, open(items)?, open(jobs)?, open(positions)?]);
        Ok(Store { db, spaces })
    }
}
