//! The keys of other signers of readers' tokens: each is a file `token_key.KID.ALG` beside the secrets.
//!
//! ```text
//!   token_key.2026-05.RS256   the public key that verifies RS256 tokens whose `kid` is 2026-05
//!   token_key.shop.HS512      a secret that a backend shares with Feedgate
//! ```
//!
//! Invariants: Feedgate makes none of these files and changes none. A file with a secret is for its owner alone; only
//! its owner may change a file with a public key.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use feedgate_gateway::Keys;

use super::{PRIVATE, PUBLIC, for_owner};

/// The beginning of the name of each such file.
const PREFIX: &str = "token_key.";

/// The beginning of the last part of the name, if the file holds a secret: HS256, HS384 or HS512.
const SECRET: &str = "HS";

/// Adds the keys of all such files in the directory to `keys`, in the order of their names. Fails with the path of the
/// first file that cannot be used, and with what would be right.
pub(crate) fn add(keys: Keys, directory: &Path) -> anyhow::Result<Keys> {
    named(directory)?.into_iter().try_fold(keys, |keys, name| {
        let path = directory.join(format!("{PREFIX}{name}"));
        let is_secret = name.rsplit('.').next().is_some_and(|algorithm| algorithm.starts_with(SECRET));
        for_owner(&path, &path.metadata()?, if is_secret { PRIVATE } else { PUBLIC })?;
        let contents = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let added = keys.with_token_key(&name, &contents);
        added.map_err(|why| anyhow!("{} cannot be used: {why}", path.display()))
    })
}

/// The part behind the prefix in the names of these files, sorted.
fn named(directory: &Path) -> anyhow::Result<Vec<String>> {
    let listed = || directory.read_dir()?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>();
    let paths = listed().with_context(|| format!("{} cannot be read", directory.display()))?;
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str()?.strip_prefix(PREFIX));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\
                              -----END PUBLIC KEY-----\n";

    fn added(files: &[(&str, &str, u32)]) -> anyhow::Result<Keys> {
        let directory = tempfile::tempdir().unwrap();
        for (name, contents, mode) in files {
            let path = directory.path().join(name);
            std::fs::write(&path, contents).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
        }
        add(Keys::new("api", b"own"), directory.path())
    }

    #[test]
    fn every_file_of_that_name_is_a_key_and_no_other_file_is() {
        let secret = "a secret of at least thirty-two bytes\n";
        let own = Keys::new("x", secret.trim_end().as_bytes()).mint(&"ann".parse().unwrap(), None, 0, 100);
        let files = [
            ("token_key", "own", 0o600),
            (".token_key.new", "half", 0o600),
            ("token_key.shop.HS256", secret, 0o600),
            ("token_key.2026.05.EdDSA", PUBLIC_KEY, 0o644),
        ];
        assert!(added(&files).unwrap().verify(&own, 1).is_ok());
        assert!(added(&files[..2]).unwrap().verify(&own, 1).is_err());
    }

    #[test]
    fn a_file_that_is_no_key_or_is_not_safe_is_named_with_what_to_do() {
        for (name, contents, mode, wants) in [
            ("token_key.shop.HS256", "a secret of at least thirty-two bytes", 0o604, "run: chmod 600"),
            ("token_key.app.EdDSA", PUBLIC_KEY, 0o666, "run: chmod 644"),
            ("token_key.app.RS256", PUBLIC_KEY, 0o644, "must hold the public key of an RSA key pair"),
            ("token_key.app", PUBLIC_KEY, 0o644, "KID.ALG"),
        ] {
            let error = format!("{:#}", added(&[(name, contents, mode)]).err().unwrap());
            assert!(error.contains(wants) && error.contains(name), "{error}");
        }
    }
}
