//! The secrets of an installation, in a directory of their own.
//!
//! ```text
//!   api_key             what backends show; it opens everything
//!   api_keys            the digests of further API keys, with their roles: see `api_keys`
//!   token_key           what signs and verifies readers' tokens (HS256)
//!   webhook_key         what signs calls of the webhook: `whsec_` and base64; only where one is set
//!   webhook_key.next    another one that signs them too, while the receiver goes over to it
//!   token_key.KID.ALG   what verifies the tokens of others who sign: see `token_keys`
//! ```
//!
//! Invariants: secrets are made once, from the system's random source, 256 bits each. They are on disk before they are
//! used, and are never made again for a server that has users. Only their owner may read them, and a file that others
//! may read is refused. All gateways of a cluster share the secrets, so there a person makes them by a command
//! (`feedgate secrets`), and no start does.

pub(crate) mod api_keys;
mod token_keys;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use feedgate_gateway::Keys;
use sha2::{Digest, Sha256};

use crate::webhook::Key;

/// What others must not do with the file of a secret, as bits of its mode: anything.
const PRIVATE: u32 = 0o077;

/// What others must not do with the file of a public key: write it.
const PUBLIC: u32 = 0o022;

/// The least characters of a secret: a shorter one could be guessed.
const LENGTH_MIN: usize = 16;

/// The name of the file that a process locks while it makes a secret. A file whose name begins with a dot is no secret.
const LOCK: &str = ".lock";

/// The files of the keys that sign calls of the webhook.
const WEBHOOK_KEYS: [&str; 2] = ["webhook_key", "webhook_key.next"];

/// Both secrets, as text. It has no `Debug`, so that no log can show them.
pub(crate) struct Secrets {
    /// What backends show: printable ASCII without spaces, so that it fits a header.
    pub(crate) api_key: String,
    /// The text whose bytes are the key that signs readers' tokens.
    pub(crate) token_key: String,
}

impl Secrets {
    /// The keys that check credentials: these secrets, the keys of other signers in the same directory, and the rules
    /// for tokens in the settings.
    pub(crate) fn keys(&self, directory: &Path, rules: &feedgate_gateway::Settings) -> anyhow::Result<Keys> {
        let keys = Keys::new(&self.api_key, self.token_key.as_bytes());
        let keys = keys.for_audience(&rules.token_audience).from_issuer(&rules.token_issuer);
        api_keys::add(token_keys::add(keys.with_leeway(rules.token_leeway_secs), directory)?, directory)
    }
}

/// Reads both secrets, and makes those that do not exist yet. The directory must belong to this process alone.
pub(crate) fn open_or_make(directory: &Path) -> anyhow::Result<Secrets> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("{} cannot be made", directory.display()))?;
    let secret = |name| read_or_make(directory, name, random);
    Ok(Secrets { api_key: secret("api_key")?, token_key: secret("token_key")? })
}

/// Reads both secrets of a server that has users. Fails if one is missing: it was lost, and a new one would not fit
/// what backends and readers hold.
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

/// Reads both secrets again for a running gateway, and makes none.
pub(crate) fn reread(directory: &Path) -> anyhow::Result<Secrets> {
    let needed = |name| {
        let path = directory.join(name);
        read(&path)?.with_context(|| format!("{} is missing; restore it from a copy", path.display()))
    };
    Ok(Secrets { api_key: needed("api_key")?, token_key: needed("token_key")? })
}

/// The digest of each file whose name begins with one of `prefixes`, by the file's name. The digests show which secrets
/// have changed, without keeping any secret. Without prefixes the directory need not exist.
pub(crate) fn digests(directory: &Path, prefixes: &[&str]) -> anyhow::Result<BTreeMap<String, [u8; 32]>> {
    let mut digests = BTreeMap::new();
    if prefixes.is_empty() {
        return Ok(digests);
    }
    let context = || format!("{} cannot be read", directory.display());
    for entry in directory.read_dir().with_context(context)? {
        let Ok(name) = entry.with_context(context)?.file_name().into_string() else { continue };
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            let path = directory.join(&name);
            let contents = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            digests.insert(name, Sha256::digest(contents).into());
        }
    }
    Ok(digests)
}

/// The API key of the server whose secrets are here.
pub(crate) fn api_key(directory: &Path) -> anyhow::Result<String> {
    let path = directory.join("api_key");
    read(&path)?.with_context(|| {
        format!("there is no {}; start the server once (feedgate serve), or give --data or --key", path.display())
    })
}

/// The keys that sign calls of the webhook, for a process with its own stores; the first key is made if it is missing.
pub(crate) fn webhook_keys_or_make(directory: &Path) -> anyhow::Result<Vec<Key>> {
    read_or_make(directory, WEBHOOK_KEYS[0], Key::fresh)?;
    webhook_keys(directory)
}

/// The keys that sign calls of the webhook. The first key must exist.
pub(crate) fn webhook_keys(directory: &Path) -> anyhow::Result<Vec<Key>> {
    let mut keys = vec![];
    for name in WEBHOOK_KEYS {
        let path = directory.join(name);
        if let Some(text) = read(&path)? {
            keys.push(Key::parse(&text).with_context(|| format!("{} holds no key of a webhook", path.display()))?);
        } else if keys.is_empty() {
            bail!(
                "there is no {}, which signs the calls of push.webhook_url; `feedgate secrets DIR` makes it, for all \
                 workers of a cluster",
                path.display()
            );
        }
    }
    Ok(keys)
}

/// Reads a secret; if there is none, stores one that `fresh` makes. Processes that do this at the same time all get the
/// same secret.
fn read_or_make(directory: &Path, name: &str, fresh: fn() -> anyhow::Result<String>) -> anyhow::Result<String> {
    let path = directory.join(name);
    if let Some(secret) = read(&path)? {
        return Ok(secret);
    }
    let _held = lock(directory)?;
    // Another process may have made the secret while this one waited.
    if let Some(secret) = read(&path)? {
        return Ok(secret);
    }
    let made = fresh().and_then(|secret| store(directory, name, &secret).map(|()| secret));
    made.with_context(|| format!("{} cannot be made", path.display()))
}

/// Waits until no other process makes a secret in this directory, and keeps others out until the result is dropped.
fn lock(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join(LOCK);
    let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let locked = open.and_then(|file| file.lock().map(|()| file));
    locked.with_context(|| format!("{} cannot be locked", path.display()))
}

/// Reads a secret; `None` if there is no such file. Fails if others may read it, or if it is no usable secret.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let show = path.display();
    let metadata = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata.with_context(|| format!("{show} cannot be read"))?,
    };
    for_owner(path, &metadata, PRIVATE)?;
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

/// Fails if the mode of a file lets others do what is `forbidden`: [`PRIVATE`] or [`PUBLIC`].
fn for_owner(path: &Path, metadata: &Metadata, forbidden: u32) -> anyhow::Result<()> {
    let (show, mode) = (path.display(), metadata.permissions().mode() & 0o777);
    // What the group of root may read, root may read anyway. systemd gives credentials such a mode.
    let others = if metadata.gid() == 0 { forbidden & !0o040 } else { forbidden };
    if mode & others != 0 {
        let (what, right) = if forbidden == PRIVATE { ("read or written", 600) } else { ("written", 644) };
        bail!("{show} may be {what} by others (mode {mode:04o}); run: chmod {right} {show}");
    }
    Ok(())
}

/// Makes a secret as text, from the system's random source.
fn random() -> anyhow::Result<String> {
    feedgate_gateway::auth::secret().map_err(|e| anyhow::anyhow!("the system gave no random bytes: {e}"))
}

/// Stores a file for its owner alone. It is written under another name, synced and renamed: after a crash it is there
/// whole, as it was before, or not at all.
fn store(directory: &Path, name: &str, contents: &str) -> anyhow::Result<()> {
    let draft = directory.join(format!(".{name}.new"));
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(contents.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, directory.join(name))?;
    Ok(File::open(directory)?.sync_all()?)
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
    fn processes_that_make_the_secrets_at_once_all_get_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let secrets = || {
            let Secrets { api_key, token_key } = open_or_make(directory.path()).unwrap();
            [api_key, token_key]
        };
        let made: Vec<[String; 2]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(secrets)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let kept = secrets();
        assert!(made.iter().all(|made| *made == kept));
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
    fn a_key_of_the_webhook_is_made_once_and_a_second_one_signs_too() {
        let data = tempfile::tempdir().unwrap();
        let error = webhook_keys(data.path()).err().unwrap().to_string();
        assert!(error.contains("feedgate secrets DIR"), "{error}");
        assert_eq!(webhook_keys_or_make(data.path()).unwrap().len(), 1);
        let path = data.path().join("webhook_key");
        let made = std::fs::read_to_string(&path).unwrap();
        assert!(made.starts_with("whsec_") && mode(&path) == 0o600, "{made}");
        store(data.path(), "webhook_key.next", &Key::text(&[7; 32])).unwrap();
        assert_eq!(webhook_keys_or_make(data.path()).unwrap().len(), 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), made);
        store(data.path(), "webhook_key.next", "0123456789abcdef").unwrap();
        let error = format!("{:#}", webhook_keys(data.path()).err().unwrap());
        assert!(error.contains("webhook_key.next") && error.contains("whsec_ and base64"), "{error}");
    }

    #[test]
    fn a_gateway_that_reads_its_secrets_again_makes_none_and_knows_which_have_changed() {
        let data = tempfile::tempdir().unwrap();
        open_or_make(data.path()).unwrap();
        store(data.path(), "other", "0123456789abcdef").unwrap();
        let digests = || digests(data.path(), &["api_key", "token_key"]).unwrap();
        let before = digests();
        assert_eq!(before.keys().collect::<Vec<_>>(), ["api_key", "token_key"]);
        store(data.path(), "token_key.shop.HS256", "0123456789abcdef").unwrap();
        store(data.path(), "api_key", "0123456789abcdef").unwrap();
        let after = digests();
        assert_eq!(after.len(), 3);
        assert!(before["api_key"] != after["api_key"] && before["token_key"] == after["token_key"]);
        assert_eq!(reread(data.path()).unwrap().api_key, "0123456789abcdef");
        std::fs::remove_file(data.path().join("token_key")).unwrap();
        let error = reread(data.path()).err().unwrap().to_string();
        assert!(error.contains("token_key is missing") && !data.path().join("token_key").exists(), "{error}");
        assert!(super::digests(&data.path().join("none"), &[]).unwrap().is_empty());
    }

    #[test]
    fn a_client_without_a_server_hears_what_to_do() {
        let data = tempfile::tempdir().unwrap();
        assert!(api_key(data.path()).unwrap_err().to_string().contains("start the server once"));
    }
}
