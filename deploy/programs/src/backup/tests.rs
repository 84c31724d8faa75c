//! Which directories count as a backup that is whole.

use feedgate_embedded::Embedded;
use futures_util::TryStreamExt;

use super::*;

/// A backup as `feedgate backup` makes it, of a store without users.
fn written(dir: &Path) -> Manifest {
    let (data, secrets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rows = {
        let stores = Embedded::open(data.path(), 2).unwrap();
        let pieces = stores.archive.copy().unwrap().try_concat();
        tokio::runtime::Runtime::new().unwrap().block_on(pieces).unwrap()
    };
    write_file(&dir.join(ROWS), &rows).unwrap();
    write_file(&secrets.path().join("api_key"), b"0123456789abcdef").unwrap();
    write_file(&secrets.path().join(".api_key.new"), b"half").unwrap();
    copy_secrets(secrets.path(), &dir.join(SECRETS)).unwrap();
    describe(dir, 7).unwrap()
}

#[test]
fn what_was_written_is_whole_and_its_secrets_are_for_their_owner() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let manifest = written(dir.path());
    assert_eq!(verify(dir.path()).unwrap(), manifest);
    let files: Vec<&str> = manifest.files.keys().map(String::as_str).collect();
    assert_eq!(files, [ROWS, "secrets/api_key"]);
    let mode = |path: &str| dir.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!([ROWS, MANIFEST, SECRETS, "secrets/api_key"].map(mode), [0o600, 0o600, 0o700, 0o600]);
}

#[test]
fn a_flipped_byte_a_missing_and_an_added_file_are_refused_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    for file in [ROWS, MANIFEST, "secrets/api_key"] {
        let path = dir.path().join(file);
        let sound = fs::read(&path).unwrap();
        for at in [0, sound.len() / 2, sound.len() - 1] {
            let mut flipped = sound.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).unwrap();
            let error = format!("{:#}", verify(dir.path()).unwrap_err());
            assert!(error.starts_with(&format!("{} is damaged", path.display())), "{error}");
            assert!(error.contains("use another backup"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        let error = format!("{:#}", verify(dir.path()).unwrap_err());
        assert!(error.contains(&path.display().to_string()), "{error}");
        fs::write(&path, sound).unwrap();
        verify(dir.path()).unwrap();
    }
    fs::write(dir.path().join("secrets/token_key.x"), "").unwrap();
    let error = format!("{:#}", verify(dir.path()).unwrap_err());
    assert!(error.contains("secrets/token_key.x is damaged: it is not in the manifest"), "{error}");
}

#[test]
fn a_directory_that_is_no_backup_or_a_later_one_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = format!("{:#}", verify(dir.path()).unwrap_err());
    assert!(error.contains("is no backup; name a directory that feedgate backup has made"), "{error}");
    fs::write(dir.path().join(MANIFEST), r#"{"format": 2, "version": "9.9", "other": 1}"#).unwrap();
    let error = format!("{:#}", verify(dir.path()).unwrap_err());
    assert!(error.contains("use feedgate 9.9 or later"), "{error}");
}

#[test]
fn a_backup_is_made_beside_its_place() {
    assert_eq!(partial(Path::new("/a/b/")).unwrap(), Path::new("/a/b.partial"));
    assert_eq!(partial(Path::new("b.1")).unwrap(), Path::new("b.1.partial"));
    assert!(partial(Path::new("/")).is_err());
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_is_told_to_use_the_tools_of_postgresql() {
    use crate::url::StoreUrl;

    let cluster = Settings {
        archive_url: StoreUrl::new("postgres://db/feedgate"),
        inbox_url: StoreUrl::new("redis://redis"),
        bus_url: StoreUrl::new("nats://nats"),
        ..Settings::default()
    };
    let error = refuse_cluster("feedgate restore", &cluster).unwrap_err().to_string();
    assert!(error.starts_with("feedgate restore is for a server that keeps everything in its own files"), "{error}");
    assert!(error.contains("pg_basebackup") && error.contains("pg_restore"), "{error}");
    // Without that, a new user is shown the feed of another.
    assert!(error.contains("empty Redis: see \"Backups of a cluster\" in docs/operate.md"), "{error}");
    refuse_cluster("feedgate restore", &Settings::default()).unwrap();
}
