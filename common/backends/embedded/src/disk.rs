//! What a disk has to be asked for in so many words.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;

/// Brings what memory holds of a file to the disk, and forgets it: whoever reads next reads the disk. After a sync that has
/// failed memory goes on showing what the disk has not got, and a second sync succeeds.
pub(crate) fn settle(file: &File) -> io::Result<()> {
    file.sync_all()?;
    // A file system in memory has nothing to forget.
    _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

/// The bytes of a file as the disk has them.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    settle(&File::open(path)?)?;
    fs::read(path)
}

/// Whether there are `bytes` for a new file in `dir`, and a descriptor for it.
pub(crate) fn has_room(dir: &Path, bytes: u64) -> io::Result<()> {
    let path = dir.join(".room");
    let asked =
        OpenOptions::new().create(true).truncate(true).write(true).open(&path).and_then(|file| {
            match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                told => Ok(told?),
            }
        });
    let removed = fs::remove_file(&path);
    asked.and(removed)
}

/// Makes or replaces a file whole: it is there with all its bytes, durably, or as it was before.
pub(crate) fn write_whole(dir: &Path, name: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let beside = dir.join(format!("{name}.tmp"));
    let renamed = File::create(&beside).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&beside, dir.join(name))?;
        Ok(file)
    });
    let file = renamed.inspect_err(|_| {
        // What did not fit must not keep the disk full: the log needs the room.
        _ = fs::remove_file(&beside);
    })?;
    sync_dir(dir)?;
    Ok(file)
}

/// Makes the directory's names durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_did_not_fit_on_the_disk_gives_its_room_back_and_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        write_whole(dir.path(), "a", |file| file.write_all(b"old")).unwrap();
        let full = write_whole(dir.path(), "a", |file| {
            file.write_all(b"half of the new")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a"]);
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"old");
    }
}
