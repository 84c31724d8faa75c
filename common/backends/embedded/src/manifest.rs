//! What a data directory held when it was last used: the file `manifest`, as JSON.
//!
//! ```text
//!   open    files and counters found  ≥  noted?  ──no──▶ refused, with the missing file's name
//!             │ yes
//!             ▼
//!   noted: at each opening, when the journal is followed by another, at the close
//! ```
//!
//! Without this file a store whose files were removed would look like a new one, or like one in which nothing has
//! happened for long. The file notes only numbers that never shrink; at the next opening no number may be less than
//! noted. Damage within a journal, and a loss between two journals, is found by other means (the files `journal.rs` and
//! `answered.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use feedgate_common::error::{Result, StoreError};
use serde::{Deserialize, Serialize};

use crate::{answered, disk, format, journal};

/// The name of the file in the data directory.
const NAME: &str = "manifest";

/// The version of the file's format.
const FORMAT: u32 = 1;

/// The counters of an Archive that never shrink, by name.
pub(crate) type Counters = BTreeMap<String, u64>;

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    /// The number of the newest journal.
    journal: u64,
    /// Files of the Archive that exist from its first opening on, relative to its directory.
    files: Vec<String>,
    counters: Counters,
}

/// What a file of any format holds.
#[derive(Deserialize)]
struct Written {
    format: u32,
}

impl Manifest {
    /// Reads the manifest in the data directory `dir`; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` if the file is damaged or of another format, `Unavailable` if it cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let unread = format_args!("cannot read {}: {error}", path.display());
                return Err(StoreError::unavailable(unread).with_source(error));
            }
        };
        let damaged = |_| {
            StoreError::corrupt(format_args!(
                "{} does not check out; restore it, or remove it if you know the directory to be whole",
                path.display()
            ))
        };
        let written: Written = serde_json::from_slice(&text).map_err(damaged)?;
        if written.format != FORMAT {
            return Err(format::of_another(path.display(), written.format, FORMAT));
        }
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    /// Describes the Archive in the directory `archive` as it is now, with its `counters`.
    pub(crate) fn of(archive: &Path, counters: Counters) -> io::Result<Self> {
        let mut files = vec!["version".to_owned()];
        for tree in fs::read_dir(archive.join("keyspaces"))? {
            let current = format!("keyspaces/{}/current", tree?.file_name().to_string_lossy());
            if archive.join(&current).exists() {
                files.push(current);
            }
        }
        if archive.join(answered::NAME).exists() {
            files.push(answered::NAME.to_owned());
        }
        files.sort_unstable();
        Ok(Self { format: FORMAT, journal: newest_journal(archive)?.unwrap_or(0), files, counters })
    }

    /// Writes the manifest into the data directory `dir`. Atomic and durable. Fails with `Unavailable`; then the old
    /// manifest may still be there.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).expect("plain fields");
        disk::write_whole(dir, NAME, |file| file.write_all(&text)).map(drop).map_err(|error| {
            StoreError::unavailable(format_args!("cannot write {}: {error}", dir.join(NAME).display()))
                .with_source(error)
        })
    }

    /// A manifest that names the newest journal in `archive`; `None` if this one names it already.
    pub(crate) fn followed(&self, archive: &Path) -> Option<Self> {
        let journal = newest_journal(archive).ok().flatten().filter(|newest| *newest > self.journal)?;
        Some(Self { journal, ..self.clone() })
    }

    /// A noted file that no longer exists, if there is one. To be called before anything is opened, since opening makes
    /// some of the files anew.
    pub(crate) fn missing(&self, archive: &Path) -> Option<PathBuf> {
        let file = self.files.iter().map(|file| archive.join(file)).find(|path| !path.exists());
        let has_journal =
            newest_journal(archive).is_ok_and(|newest| newest.is_some_and(|newest| newest >= self.journal));
        file.or_else(|| (!has_journal).then(|| journal::path(archive, self.journal)))
    }

    /// Describes a counter that was noted with a greater value than the counter has in `now`; `None` if there is no
    /// such counter.
    pub(crate) fn ahead_of(&self, now: &Counters) -> Option<String> {
        let ahead = |(name, noted): (&String, &u64)| {
            let found = *now.get(name)?;
            (found < *noted).then(|| format!("its counter {name:?} was at {noted} and is at {found}"))
        };
        self.counters.iter().find_map(ahead)
    }

    /// The noted value of a counter; 0 if it was not noted.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

fn newest_journal(archive: &Path) -> io::Result<Option<u64>> {
    Ok(journal::range(archive)?.map(|journals| *journals.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(epoch: u64) -> Counters {
        BTreeMap::from([("epoch".to_owned(), epoch), ("users".to_owned(), 7)])
    }

    fn archive(dir: &Path) -> PathBuf {
        let archive = dir.join("archive");
        for tree in ["0", "1"] {
            fs::create_dir_all(archive.join("keyspaces").join(tree)).unwrap();
            fs::write(archive.join("keyspaces").join(tree).join("current"), "").unwrap();
        }
        for file in ["version", "3.jnl", "4.jnl"] {
            fs::write(archive.join(file), "").unwrap();
        }
        archive
    }

    #[test]
    fn what_was_noted_comes_back_and_every_file_of_it_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let archive = archive(dir.path());
        assert_eq!(Manifest::read(dir.path()).unwrap(), None);
        let noted = Manifest::of(&archive, counters(5)).unwrap();
        noted.write(dir.path()).unwrap();
        assert_eq!(Manifest::read(dir.path()).unwrap().as_ref(), Some(&noted));
        assert_eq!((noted.missing(&archive), noted.followed(&archive)), (None, None));
        for file in ["version", "keyspaces/0/current", "keyspaces/1/current", "4.jnl"] {
            let path = archive.join(file);
            fs::remove_file(&path).unwrap();
            assert_eq!(noted.missing(&archive), Some(path.clone()));
            fs::write(path, "").unwrap();
        }
        fs::remove_file(archive.join("3.jnl")).unwrap();
        assert_eq!(noted.missing(&archive), None, "a journal goes once its tables are written");
        fs::rename(archive.join("4.jnl"), archive.join("5.jnl")).unwrap();
        assert_eq!(noted.missing(&archive), None, "another has followed");
        let followed = noted.followed(&archive).unwrap();
        fs::rename(archive.join("5.jnl"), archive.join("4.jnl")).unwrap();
        assert_eq!(followed.missing(&archive), Some(archive.join("5.jnl")));
    }

    #[test]
    fn counters_may_grow_and_may_not_shrink() {
        let dir = tempfile::tempdir().unwrap();
        let noted = Manifest::of(&archive(dir.path()), counters(5)).unwrap();
        assert_eq!((noted.ahead_of(&counters(5)), noted.ahead_of(&counters(6))), (None, None));
        assert_eq!(noted.ahead_of(&counters(4)).unwrap(), "its counter \"epoch\" was at 5 and is at 4");
    }

    #[test]
    fn a_manifest_that_is_damaged_or_newer_is_refused_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let newer = "is of format 2, and this version reads format 1 only: start the version that wrote it";
        let damaged = "does not check out; restore it";
        let texts = [("", damaged), ("{", damaged), (r#"{"format":1}"#, damaged), (r#"{"format":2}"#, newer)];
        for (text, what) in texts {
            fs::write(dir.path().join(NAME), text).unwrap();
            let Err(StoreError::Corrupt(why)) = Manifest::read(dir.path()) else { panic!("{text} is read") };
            assert!(why.contains(&format!("manifest {what}")), "{why}");
        }
    }
}
