//! The two secrets of an installation, in `<data>/secrets`.
//!
//! ```text
//!   api_key     what backends show
//!   token_key   what signs and verifies readers' tokens (HS256)
//! ```
//!
//! Invariants: made once, from the system's random source, 256 bits each; on disk before they are
//! used; readable by their owner alone, and refused if anybody else may read them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// A shorter one could be guessed.
const LENGTH_MIN: usize = 16;

/// Both secrets, as text. Has no `Debug`, so that no log can show them.
pub(crate) struct Secrets {
    /// Of printable ASCII without spaces, so that it fits a header.
    pub(crate) api_key: String,
    /// Its bytes are the key.
    pub(crate) token_key: String,
}

/// Where they are.
pub(crate) fn directory(data: &Path) -> PathBuf {
    data.join("secrets")
}

/// Reads both, making those that do not exist yet. `data` must belong to this process alone.
pub(crate) fn open_or_make(data: &Path) -> anyhow::Result<Secrets> {
    let directory = directory(data);
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("{} cannot be made", directory.display()));
        }
        _ => {}
    }
    Ok(Secrets { api_key: read_or_make(&directory, "api_key")?, token_key: read_or_make(&directory, "token_key")? })
}

/// The API key of the server that keeps its things in `data`.
pub(crate) fn api_key(data: &Path) -> anyhow::Result<String> {
    let path = directory(data).join("api_key");
    read(&path)?.with_context(|| {
        format!("there is no {}; start the server once (feedgate serve), or give --data or --key", path.display())
    })
}

fn read_or_make(directory: &Path, name: &str) -> anyhow::Result<String> {
    let path = directory.join(name);
    match read(&path)? {
        Some(secret) => Ok(secret),
        None => make(directory, name).with_context(|| format!("{} cannot be made", path.display())),
    }
}

/// `None` if there is no such file.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let show = path.display();
    let metadata = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata.with_context(|| format!("{show} cannot be read"))?,
    };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        bail!("{show} may be read or written by others (mode {mode:04o}); run: chmod 600 {show}");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("{show} cannot be read"))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    let remedy = "remove the file to have a new one made, or restore it";
    ensure!(!secret.is_empty(), "{show} is empty; {remedy}");
    ensure!(secret.len() >= LENGTH_MIN, "{show} holds fewer than {LENGTH_MIN} characters; {remedy}");
    ensure!(
        secret.bytes().all(|b| b.is_ascii_graphic()),
        "{show} holds more than one line of printable ASCII; {remedy}"
    );
    Ok(Some(secret.to_owned()))
}

/// Written beside its place, synced and renamed: after a crash it is there whole or not at all.
fn make(directory: &Path, name: &str) -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| anyhow::anyhow!("the system gave no random bytes: {e}"))?;
    let secret = BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let draft = directory.join(format!(".{name}.new"));
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(secret.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, directory.join(name))?;
    File::open(directory)?.sync_all()?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn secrets_are_made_once_and_for_their_owner_alone() {
        let data = tempfile::tempdir().unwrap();
        let made = open_or_make(data.path()).unwrap();
        assert_ne!(made.api_key, made.token_key);
        assert_eq!(made.api_key.len(), 43);
        let directory = directory(data.path());
        assert_eq!(mode(&directory), 0o700);
        assert_eq!([mode(&directory.join("api_key")), mode(&directory.join("token_key"))], [0o600; 2]);
        let again = open_or_make(data.path()).unwrap();
        assert_eq!((again.api_key, again.token_key), (made.api_key, made.token_key));
    }

    #[test]
    fn a_draft_that_a_crash_left_is_no_obstacle() {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory(data.path())).unwrap();
        std::fs::write(directory(data.path()).join(".api_key.new"), "half").unwrap();
        assert_eq!(open_or_make(data.path()).unwrap().api_key.len(), 43);
    }

    #[test]
    fn a_secret_of_ones_own_may_end_in_a_newline() {
        let data = tempfile::tempdir().unwrap();
        open_or_make(data.path()).unwrap();
        std::fs::write(directory(data.path()).join("api_key"), "0123456789abcdef\n").unwrap();
        assert_eq!(open_or_make(data.path()).unwrap().api_key, "0123456789abcdef");
    }

    #[test]
    fn a_secret_that_others_may_read_or_that_is_none_is_refused_with_what_to_do() {
        for (text, mode, wants) in [
            ("0123456789abcdef", 0o640, "run: chmod 600"),
            ("0123456789abcdef", 0o604, "run: chmod 600"),
            ("", 0o600, "is empty; remove the file"),
            ("\n", 0o600, "is empty; remove the file"),
            ("short", 0o600, "fewer than 16 characters"),
            ("0123456789abcdef two", 0o600, "one line of printable ASCII"),
        ] {
            let data = tempfile::tempdir().unwrap();
            open_or_make(data.path()).unwrap();
            let path = directory(data.path()).join("token_key");
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let error = format!("{:#}", open_or_make(data.path()).err().unwrap());
            assert!(error.contains(wants) && error.contains("token_key"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_client_without_a_server_hears_what_to_do() {
        let data = tempfile::tempdir().unwrap();
        assert!(api_key(data.path()).unwrap_err().to_string().contains("start the server once"));
    }
}
