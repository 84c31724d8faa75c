//! The two secrets of an installation, in a directory of their own.
//!
//! ```text
//!   api_key     what backends show
//!   token_key   what signs and verifies readers' tokens (HS256)
//! ```
//!
//! Invariants: secrets are made once, from the system's random source, 256 bits each. They are on disk before they are
//! used, and are never made again for a server that has users. Only their owner may read them, and a file that others
//! may read is refused. All gateways of a cluster share them, so there they are made on purpose (`feedgate secrets`),
//! never as a side effect.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// The least characters of a secret: a shorter one could be guessed.
const LENGTH_MIN: usize = 16;

/// Both secrets, as text. It has no `Debug`, so that no log can show them.
pub(crate) struct Secrets {
    /// What backends show: printable ASCII without spaces, so that it fits a header.
    pub(crate) api_key: String,
    /// The text whose bytes are the key that signs readers' tokens.
    pub(crate) token_key: String,
}

/// Reads both secrets, and makes those that do not exist yet. The directory must belong to this process alone.
pub(crate) fn open_or_make(directory: &Path) -> anyhow::Result<Secrets> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("{} cannot be made", directory.display()))?;
    Ok(Secrets { api_key: read_or_make(directory, "api_key")?, token_key: read_or_make(directory, "token_key")? })
}

/// Reads both secrets of a server that has users. A missing one was lost, and a new one would not fit what backends and
/// readers hold, so it fails.
pub(crate) fn open_used(directory: &Path) -> anyhow::Result<Secrets> {
    let used = |name, stands_for| {
        let path = directory.join(name);
        read(&path)?.with_context(|| {
            format!(
                "{} is missing, though this server has users: {stands_for}. Restore the file from a copy; or start once \
                 with --accept-loss, which makes another",
                path.display()
            )
        })
    };
    Ok(Secrets {
        api_key: used("api_key", "with another key no backend gets in")?,
        token_key: used("token_key", "with another key no reader's token is valid")?,
    })
}

/// Reads both secrets, which must exist; for a gateway of a cluster.
pub(crate) fn open(directory: &Path) -> anyhow::Result<Secrets> {
    let shared = |name| {
        let path = directory.join(name);
        read(&path)?.with_context(|| {
            format!(
                "there is no {}; all gateways of a cluster share their secrets: make them once with \
                 `feedgate secrets DIR`, and name that directory to each of them (setting `secrets`, variable \
                 FEEDGATE_SECRETS)",
                path.display()
            )
        })
    };
    Ok(Secrets { api_key: shared("api_key")?, token_key: shared("token_key")? })
}

/// The API key of the server whose secrets are here.
pub(crate) fn api_key(directory: &Path) -> anyhow::Result<String> {
    let path = directory.join("api_key");
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

/// Reads a secret; `None` if there is no such file. Fails if others may read it, or if it is no usable secret.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let show = path.display();
    let metadata = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata.with_context(|| format!("{show} cannot be read"))?,
    };
    let mode = metadata.permissions().mode() & 0o777;
    // What the group of root may read, root may read anyway: systemd hands out credentials like that.
    let others = if metadata.gid() == 0 { 0o037 } else { 0o077 };
    if mode & others != 0 {
        bail!("{show} may be read or written by others (mode {mode:04o}); run: chmod 600 {show}");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("{show} cannot be read"))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    let remedy = "restore the file, or remove it and start once with --accept-loss to have a new one made";
    ensure!(!secret.is_empty(), "{show} is empty; {remedy}");
    ensure!(secret.len() >= LENGTH_MIN, "{show} holds fewer than {LENGTH_MIN} characters; {remedy}");
    ensure!(
        secret.bytes().all(|b| b.is_ascii_graphic()),
        "{show} holds more than one line of printable ASCII; {remedy}"
    );
    Ok(Some(secret.to_owned()))
}

/// Makes a secret. It is written under another name, synced and renamed: after a crash it is there whole or not at all.
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
        let parent = tempfile::tempdir().unwrap();
        let directory = &parent.path().join("a/secrets");
        let made = open_or_make(directory).unwrap();
        assert_ne!(made.api_key, made.token_key);
        assert_eq!(made.api_key.len(), 43);
        assert_eq!(mode(directory), 0o700);
        assert_eq!([mode(&directory.join("api_key")), mode(&directory.join("token_key"))], [0o600; 2]);
        for again in [open_or_make(directory).unwrap(), open(directory).unwrap()] {
            assert_eq!((&again.api_key, &again.token_key), (&made.api_key, &made.token_key));
        }
    }

    #[test]
    fn a_draft_that_a_crash_left_is_no_obstacle() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(".api_key.new"), "half").unwrap();
        assert_eq!(open_or_make(data.path()).unwrap().api_key.len(), 43);
    }

    #[test]
    fn a_secret_of_ones_own_may_end_in_a_newline() {
        let data = tempfile::tempdir().unwrap();
        open_or_make(data.path()).unwrap();
        std::fs::write(data.path().join("api_key"), "0123456789abcdef\n").unwrap();
        assert_eq!(open_or_make(data.path()).unwrap().api_key, "0123456789abcdef");
    }

    #[test]
    fn a_secret_that_others_may_read_or_that_is_none_is_refused_with_what_to_do() {
        for (text, mode, wants) in [
            ("0123456789abcdef", 0o660, "run: chmod 600"),
            ("0123456789abcdef", 0o604, "run: chmod 600"),
            ("", 0o600, "is empty; restore the file"),
            ("\n", 0o600, "is empty; restore the file"),
            ("short", 0o600, "fewer than 16 characters"),
            ("0123456789abcdef two", 0o600, "one line of printable ASCII"),
        ] {
            let data = tempfile::tempdir().unwrap();
            open_or_make(data.path()).unwrap();
            let path = data.path().join("token_key");
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let error = format!("{:#}", open_or_make(data.path()).err().unwrap());
            assert!(error.contains(wants) && error.contains("token_key"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_server_that_has_users_is_given_no_other_secret_in_place_of_one_that_is_missing() {
        let data = tempfile::tempdir().unwrap();
        let made = open_or_make(data.path()).unwrap();
        assert_eq!(open_used(data.path()).unwrap().token_key, made.token_key);
        for name in ["token_key", "api_key"] {
            let path = data.path().join(name);
            std::fs::remove_file(&path).unwrap();
            let error = open_used(data.path()).err().unwrap().to_string();
            assert!(
                error.contains(&format!("{} is missing", path.display())) && error.contains("--accept-loss"),
                "{error}"
            );
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_cluster_makes_no_secrets_on_the_way() {
        let data = tempfile::tempdir().unwrap();
        let error = open(data.path()).err().unwrap().to_string();
        assert!(error.contains("api_key") && error.contains("feedgate secrets DIR"), "{error}");
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_client_without_a_server_hears_what_to_do() {
        let data = tempfile::tempdir().unwrap();
        assert!(api_key(data.path()).unwrap_err().to_string().contains("start the server once"));
    }
}
