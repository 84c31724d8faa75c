//! The data directory, and where clients find the server that runs on it.
//!
//! ```text
//!   server.url   where the running server takes the API key; removed when it stops
//!   secrets/     see `secrets`
//!   lock         held while a process uses the directory: one at a time
//!   the rest     the embedded stores', if it has them
//! ```

use std::fs::{DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Makes the directory if needed, for its owner alone, and gives its absolute path.
pub(crate) fn make(path: &Path) -> anyhow::Result<PathBuf> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path).and_then(|()| path.canonicalize());
    made.with_context(|| format!("the data directory {} cannot be used; choose another with --data", path.display()))
}

/// Locks the directory for this process until the file is dropped. Embedded stores lock it themselves.
pub(crate) fn lock(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let lock = File::options().create(true).truncate(false).write(true).open(&path);
    let lock = lock.with_context(|| format!("{} cannot be opened", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("{} cannot be locked", path.display())),
        Err(TryLockError::WouldBlock) => bail!(
            "the data directory {} is in use by another process; stop it, or choose another directory with --data",
            data.display()
        ),
    }
}

/// The file that tells clients where the server is. Dropping this removes the file.
pub(crate) struct Announced {
    url: PathBuf,
    _lock: Option<File>,
}

/// Tells clients where the server is. The directory must be locked; `lock` is held as long as the result. The file is
/// written under another name and renamed, so that no client reads only a part of it.
pub(crate) fn announce(data: &Path, url: &str, lock: Option<File>) -> anyhow::Result<Announced> {
    let (draft, place) = (data.join(".server.url.new"), url_file(data));
    std::fs::write(&draft, url)
        .and_then(|()| std::fs::rename(&draft, &place))
        .with_context(|| format!("{} cannot be written", place.display()))?;
    Ok(Announced { url: place, _lock: lock })
}

impl Drop for Announced {
    fn drop(&mut self) {
        // If the file is left, a client only hears "no server answers" instead of "no server runs".
        let _ = std::fs::remove_file(&self.url);
    }
}

fn url_file(data: &Path) -> PathBuf {
    data.join("server.url")
}

/// The URL of the server of this data directory; `None` if no server runs.
pub(crate) fn server_url(data: &Path) -> anyhow::Result<Option<String>> {
    let path = url_file(data);
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).with_context(|| format!("{} cannot be read", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = format!("{:#}", make(&file.path().join("data")).unwrap_err());
        assert!(error.contains("choose another with --data") && error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn the_address_is_known_while_the_server_runs() {
        let dir = tempfile::tempdir().unwrap();
        let data = make(&dir.path().join("a/b")).unwrap();
        assert_eq!(server_url(&data).unwrap(), None);
        let announced = announce(&data, "http://127.0.0.1:1", None).unwrap();
        assert_eq!(server_url(&data).unwrap().as_deref(), Some("http://127.0.0.1:1"));
        drop(announced);
        assert_eq!(server_url(&data).unwrap(), None);
    }

    #[test]
    fn a_directory_is_one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(dir.path()).unwrap();
        let error = lock(dir.path()).unwrap_err().to_string();
        assert!(error.contains("in use by another process") && error.contains("--data"), "{error}");
        drop(held);
        lock(dir.path()).unwrap();
    }
}
