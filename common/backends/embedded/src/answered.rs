//! Notes up to where the journals of the store were answered as durable: the file `answered` beside them.
//!
//! ```text
//!   writer   commit ─▶ sync ─▶ note the end of the journal ─▶ answer
//!   opening  a journal that is whole up to the noted end is opened; any other is refused (`journal.rs`)
//! ```
//!
//! The note is written in place and is not synced, so it costs microseconds. After a loss of power it may be some
//! seconds old, never too new; then damage to data that was answered in these seconds cannot be told from an unfinished
//! write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::disk;
use crate::journal::{self, Place};

/// The name of the file in the directory of the store.
pub(crate) const NAME: &str = "answered";

/// The bytes of the file: the number of a journal, an offset, a checksum.
const BYTES: usize = 20;

/// The open note, which follows the journal while it grows.
pub(crate) struct Answered {
    dir: PathBuf,
    note: File,
    place: Place,
    journal: File,
}

impl Answered {
    /// Notes all that the journals in `dir` hold, which the store has just opened. This first note is durable.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let newest = *journal::range(dir)?.ok_or(ErrorKind::NotFound)?.end();
        let journal = File::open(journal::path(dir, newest))?;
        // If the operator accepted a loss, opening has cut off the journal, which may now end before the noted place.
        let length = journal.metadata()?.len();
        let noted = fs::read(dir.join(NAME)).ok().and_then(|noted| place(&noted));
        let noted = noted.filter(|noted| noted.journal == newest && noted.offset <= length);
        let offset = journal::sound_end(&journal, noted.map_or(0, |noted| noted.offset), &mut None)?;
        let place = Place { journal: newest, offset };
        disk::write_whole(dir, NAME, |file| file.write_all(&bytes(place)))?;
        let note = OpenOptions::new().write(true).open(dir.join(NAME))?;
        Ok(Self { dir: dir.to_owned(), note, place, journal })
    }

    /// Notes all that the journals hold now. To be called after a sync and before the answers. `upcoming` is the number
    /// that the store gives to its next batch.
    pub(crate) fn follow(&mut self, upcoming: u64) -> io::Result<()> {
        let place = self.place;
        loop {
            let mut last = None;
            self.place.offset = journal::sound_end(&self.journal, self.place.offset, &mut last)?;
            // To look for another journal costs more than the rest of this call, and is needed only if the last batch
            // is missing here.
            if last.is_some_and(|last| last + 1 == upcoming) {
                break;
            }
            let Some(next) = self.next()? else { break };
            self.journal = File::open(journal::path(&self.dir, next))?;
            self.place = Place { journal: next, offset: 0 };
        }
        if self.place != place { self.note.write_all_at(&bytes(self.place), 0) } else { Ok(()) }
    }

    /// The number of the journal after the present one, if there is one. fjall numbers journals upwards, and removes
    /// the oldest.
    fn next(&self) -> io::Result<Option<u64>> {
        let next = self.place.journal + 1;
        if journal::path(&self.dir, next).try_exists()? {
            return Ok(Some(next));
        }
        let removed = self.journal.metadata()?.nlink() == 0;
        if removed { Ok(journal::range(&self.dir)?.map(|journals| *journals.start())) } else { Ok(None) }
    }
}

/// Describes what the store in `dir` has lost of that which was answered; `None` if it has lost nothing, or is new. To
/// be called before the store is opened.
pub(crate) fn lost(dir: &Path) -> io::Result<Option<String>> {
    let noted = match fs::read(dir.join(NAME)) {
        Ok(noted) => noted,
        Err(error) if error.kind() == ErrorKind::NotFound && !dir.try_exists()? => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => vec![],
        Err(error) => return Err(error),
    };
    match place(&noted) {
        // Without a note, or with a note whose content was not written because of a loss of power, only the older
        // journals are judged.
        None if noted.iter().all(|byte| *byte == 0) => journal::damage(dir, None),
        None => Ok(Some(format!("{} does not check out", dir.join(NAME).display()))),
        place => journal::damage(dir, place),
    }
}

/// The place in the bytes of a note; `None` if the checksum or the length of the note is wrong.
fn place(noted: &[u8]) -> Option<Place> {
    let number = |at: usize| Some(u64::from_le_bytes(noted.get(at..at + 8)?.try_into().ok()?));
    let place = Place { journal: number(0)?, offset: number(8)? };
    (noted == bytes(place)).then_some(place)
}

fn bytes(place: Place) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&place.journal.to_le_bytes());
    bytes[8..16].copy_from_slice(&place.offset.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::database::tests::{seen, set};

    const ROWS: u32 = 40;

    /// A store with some rows, of which each was answered, as a killed process leaves it; and the bytes of its journal.
    async fn killed(dir: &Path) -> Vec<u8> {
        let db = Database::open(&dir.join("alive")).unwrap();
        for row in 0..ROWS {
            set(&db, row, row.into()).await;
        }
        copy(&dir.join("alive"), &dir.join("killed"));
        fs::read(journal_of(&dir.join("killed"))).unwrap()
    }

    fn journal_of(dir: &Path) -> PathBuf {
        journal::path(dir, *journal::range(dir).unwrap().unwrap().end())
    }

    /// Copies a directory. Of journals it leaves out the zeros at the end.
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let (entry, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
            if entry.is_dir() {
                copy(&entry, &to);
            } else {
                let mut bytes = fs::read(&entry).unwrap();
                if entry.extension().is_some_and(|extension| extension == "jnl") {
                    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                }
                fs::write(to, bytes).unwrap();
            }
        }
    }

    fn rows(dir: &Path) -> usize {
        seen(&Database::open(dir).unwrap()).len()
    }

    #[tokio::test]
    async fn i6_a_bit_that_flips_in_what_was_answered_takes_nothing_away_unnoticed() {
        let dir = tempfile::tempdir().unwrap();
        let journal = killed(dir.path()).await;
        let (killed, tried) = (dir.path().join("killed"), dir.path().join("tried"));
        assert_eq!(lost(&killed).unwrap(), None);
        let bits = (0..journal.len() * 8).step_by(13);
        for bit in bits {
            let mut flipped = journal.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(journal_of(&killed), flipped).unwrap();
            match lost(&killed).unwrap() {
                Some(lost) => assert!(lost.contains(".jnl is damaged behind its byte "), "{lost}"),
                None => {
                    copy(&killed, &tried);
                    assert_eq!(rows(&tried), ROWS as usize, "bit {bit}");
                    fs::remove_dir_all(&tried).unwrap();
                }
            }
        }
    }

    #[tokio::test]
    async fn i6_a_journal_that_ends_before_what_was_answered_is_noticed_and_more_behind_that_is_none_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let journal = killed(dir.path()).await;
        let killed = dir.path().join("killed");
        fs::write(journal_of(&killed), &journal[..journal.len() - 1]).unwrap();
        assert!(lost(&killed).unwrap().is_some());
        fs::write(journal_of(&killed), [&journal[..], &journal[..9]].concat()).unwrap();
        assert_eq!(lost(&killed).unwrap(), None, "a crash leaves the beginning of a batch behind");
        assert_eq!(rows(&killed), ROWS as usize);
        assert_eq!(lost(&killed).unwrap(), None);
    }

    #[tokio::test]
    async fn i6_a_damaged_or_missing_note_is_told_from_one_that_was_never_written() {
        let dir = tempfile::tempdir().unwrap();
        let journal = killed(dir.path()).await;
        let killed = dir.path().join("killed");
        assert_eq!(lost(&dir.path().join("new")).unwrap(), None);
        let note = fs::read(killed.join(NAME)).unwrap();
        for (noted, whole) in [(&note[..], true), (&note[1..], false), (&[0; BYTES], true), (&[], true)] {
            fs::write(killed.join(NAME), noted).unwrap();
            assert_eq!(lost(&killed).unwrap().is_none(), whole, "{noted:?}");
        }
        fs::write(journal_of(&killed), &journal[1..]).unwrap();
        assert_eq!(lost(&killed).unwrap(), None, "the newest journal is judged by the note alone");
    }

    #[tokio::test]
    async fn i6_an_older_journal_has_no_unfinished_end_and_none_is_missing_in_between() {
        let dir = tempfile::tempdir().unwrap();
        let journal = killed(dir.path()).await;
        let killed = dir.path().join("killed");
        let newest = journal_of(&killed);
        let number = *journal::range(&killed).unwrap().unwrap().end();
        let half = {
            let (end, mut last) = (journal.len() as u64, None);
            fs::write(&newest, &journal[..journal.len() / 2]).unwrap();
            let half = journal::sound_end(&File::open(&newest).unwrap(), 0, &mut last).unwrap();
            assert!(0 < half && half < end && last.is_some());
            half as usize
        };
        fs::remove_file(&newest).unwrap();
        let later = journal::path(&killed, number + 1);
        fs::write(&later, &journal[half..]).unwrap();
        fs::write(&newest, [&journal[..half], &[0; 99]].concat()).unwrap();
        let answered = Place { journal: number + 1, offset: (journal.len() - half) as u64 };
        fs::write(killed.join(NAME), bytes(answered)).unwrap();
        assert_eq!(lost(&killed).unwrap(), None, "a journal that another follows ends with zeros");

        fs::write(&newest, [&journal[..half], &[0; 99], &[1]].concat()).unwrap();
        assert!(lost(&killed).unwrap().unwrap().contains(&format!("{number}.jnl is damaged behind its byte {half}")));
        fs::write(&newest, &journal[..half]).unwrap();
        fs::rename(&later, journal::path(&killed, number + 2)).unwrap();
        assert!(lost(&killed).unwrap().unwrap().contains(&format!("{}.jnl is missing", number + 1)));
        fs::write(&later, &journal[..half]).unwrap();
        let repeated = lost(&killed).unwrap().unwrap();
        assert!(repeated.contains(&format!("{}.jnl is damaged behind its byte 0", number + 1)), "{repeated}");
    }

    #[tokio::test]
    async fn what_is_answered_is_noted_in_every_journal_that_follows() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("store");
        let db = Database::open(&place).unwrap();
        set(&db, 1, 1).await;
        let noted = || self::place(&fs::read(place.join(NAME)).unwrap()).unwrap();
        let before = noted();
        set(&db, 2, 2).await;
        let after = noted();
        assert!(before < after, "{before:?} {after:?}");
        drop(db);
        let mut answered = Answered::open(&place).unwrap();
        assert_eq!(noted().offset, after.offset);
        let batches = fs::read(journal_of(&place)).unwrap()[..after.offset as usize].to_vec();
        let grown = OpenOptions::new().write(true).open(journal_of(&place)).unwrap();
        grown.write_all_at(&batches, after.offset).unwrap();
        let next = journal::path(&place, after.journal + 1);
        fs::write(&next, batches).unwrap();
        answered.follow(u64::MAX).unwrap();
        assert_eq!(noted(), Place { journal: after.journal + 1, offset: after.offset });
        fs::remove_file(journal::path(&place, after.journal)).unwrap();
        fs::rename(next, journal::path(&place, after.journal + 3)).unwrap();
        fs::remove_file(journal::path(&place, after.journal + 3)).unwrap();
        fs::write(journal::path(&place, after.journal + 4), b"").unwrap();
        answered.follow(u64::MAX).unwrap();
        assert_eq!(noted(), Place { journal: after.journal + 4, offset: 0 }, "the oldest journals are gone");
    }
}
