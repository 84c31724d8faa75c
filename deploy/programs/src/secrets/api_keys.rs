//! The API keys that the operator has made, in the file `api_keys` beside the secrets.
//!
//! ```text
//!   # name   roles          digest of the key
//!   shop     read,publish   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```
//!
//! Invariants: the file holds no key, only digests, so a copy of the file opens nothing. The file changes as a whole or
//! not at all, and one process changes it at a time.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use feedgate_gateway::{ApiKey, Keys, Roles};

use super::{PRIVATE, for_owner, lock, random, store};

/// The name of the file.
const FILE: &str = "api_keys";

/// Adds the keys of the file to `keys`; none if there is no such file. Fails with the line that cannot be used.
pub(crate) fn add(keys: Keys, directory: &Path) -> anyhow::Result<Keys> {
    let path = directory.join(FILE);
    parse(keys, &read(&path)?, &path)
}

/// Makes a key with this name and these roles, and adds its line to the file. Only the answer holds the key itself.
/// Fails, and changes nothing, if there is a key of this name or if the file cannot be used.
pub(crate) fn make(directory: &Path, name: &str, roles: Roles) -> anyhow::Result<String> {
    let path = directory.join(FILE);
    let key = random()?;
    let made = ApiKey::new(name, roles, &key).map_err(|why| anyhow!(why))?;
    ensure!(
        directory.is_dir(),
        "there is no directory {}; start the server once, which makes it, or name the directory of the server with --data \
         or --config",
        directory.display()
    );
    // Two processes that read the file at once would each write it without the key of the other.
    let _held = lock(directory)?;
    let before = read(&path)?;
    let known = parse(Keys::new("", b""), &before, &path)?;
    known.with_api_key(made.clone()).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    store(directory, FILE, &format!("{before}{end}{made}\n"))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(key)
}

/// Adds the keys in the text of the file at `path` to `keys`. Fails with the line that cannot be used.
fn parse(keys: Keys, text: &str, path: &Path) -> anyhow::Result<Keys> {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.trim().starts_with('#'));
    lines.try_fold(keys, |keys, (line, number)| {
        let added = line.parse::<ApiKey>().and_then(|key| keys.with_api_key(key));
        added.map_err(|why| anyhow!("{}, line {number}: {why}", path.display()))
    })
}

/// The text of the file, empty if there is none. Fails if others may read or write it.
fn read(path: &Path) -> anyhow::Result<String> {
    let context = || format!("{} cannot be read", path.display());
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        metadata => for_owner(path, &metadata.with_context(context)?, PRIVATE)?,
    }
    std::fs::read_to_string(path).with_context(context)
}

#[cfg(test)]
mod tests {
    use feedgate_gateway::Role;

    use super::*;

    fn keys(directory: &Path) -> anyhow::Result<Keys> {
        add(Keys::new("own", b"own"), directory)
    }

    #[test]
    fn a_key_is_made_once_and_opens_what_its_roles_say_until_its_line_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let roles: Roles = [Role::Publish].into_iter().collect();
        let first = make(directory.path(), "shop", roles).unwrap();
        let second = make(directory.path(), "shop-2", Roles::from_iter([Role::Read])).unwrap();
        let both = keys(directory.path()).unwrap();
        assert_eq!(both.roles_of(&first), Some(roles));
        assert!(both.roles_of(&second).is_some() && both.roles_of("own").is_some());
        let file = directory.path().join("api_keys");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&first) && !text.contains(&second), "only digests are kept");

        let error = make(directory.path(), "shop", roles).unwrap_err().to_string();
        assert!(error.contains("there is a key shop already"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

        let (_, rest) = text.split_once('\n').unwrap();
        store(directory.path(), "api_keys", &format!("# the shop's new key\n\n{}", rest.trim_end())).unwrap();
        let third = make(directory.path(), "shop", roles).unwrap();
        let rotated = keys(directory.path()).unwrap();
        assert_eq!([&first, &second, &third].map(|key| rotated.roles_of(key).is_some()), [false, true, true]);
    }

    #[test]
    fn keys_that_are_made_at_the_same_time_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        let one = |n: usize| make(directory.path(), &format!("shop-{n}"), Roles::from_iter([Role::Read])).unwrap();
        let made: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || one(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let known = keys(directory.path()).unwrap();
        assert!(made.iter().all(|key| known.roles_of(key).is_some()));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let secrets = directory.path().join("secrets");
        let said = make(&secrets, "shop", Roles::from_iter([Role::Read])).unwrap_err().to_string();
        assert!(
            said.starts_with(&format!("there is no directory {}; start the server once", secrets.display())),
            "{said}"
        );
    }

    #[test]
    fn a_line_that_is_no_key_and_a_file_for_everybody_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), "shop", Roles::from_iter([Role::Read])).unwrap();
        let file = directory.path().join("api_keys");
        let text = std::fs::read_to_string(&file).unwrap();
        for (wrong, wants) in [
            (format!("# one\n{text}shop read\n"), "line 3: a key is NAME ROLES"),
            (text.repeat(2), "line 2: there is a key shop"),
        ] {
            store(directory.path(), "api_keys", &wrong).unwrap();
            let error = format!("{:#}", keys(directory.path()).err().unwrap());
            assert!(error.contains(wants), "{error}");
        }
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o604)).unwrap();
        assert!(keys(directory.path()).err().unwrap().to_string().contains("chmod 600"));
    }
}
