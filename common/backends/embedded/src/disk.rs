//! Reads and writes files without trust in the cached pages that the operating system keeps of them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;

/// Syncs a file to the disk and drops the system's cached pages of it, so that the next read comes from the disk. This
/// matters after a failed sync: the cache then still shows bytes that the disk never got, and a second sync would
/// succeed.
pub(crate) fn settle(file: &File) -> io::Result<()> {
    file.sync_all()?;
    // A failure here is no error: a file system in memory has no cached pages to drop.
    _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

/// The bytes of a file, read from the disk and not from the system's cache.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    settle(&File::open(path)?)?;
    fs::read(path)
}

/// Fails if the disk has no room for a new file of `bytes` in `dir`, or if the process may open no more files.
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

/// Makes the file `name` in `dir`, or replaces it. Atomic and durable: after success the file holds all its new bytes;
/// after an error or a crash the file may still be as it was before. Answers the new file.
pub(crate) fn write_whole(dir: &Path, name: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let beside = dir.join(format!("{name}.tmp"));
    let renamed = File::create(&beside).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&beside, dir.join(name))?;
        Ok(file)
    });
    let file = renamed.inspect_err(|_| {
        // The unfinished file is removed, since the log may need its room.
        _ = fs::remove_file(&beside);
    })?;
    sync_dir(dir)?;
    Ok(file)
}

/// Syncs a directory, so that files made or renamed in it keep their names after a loss of power.
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
