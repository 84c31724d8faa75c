//! The directory of a backup: how to make it, and how to check that it is complete.
//!
//! ```text
//!   DIR/backup.json    what it is: format, version, time, counts; length and SHA-256 of each other file
//!   DIR/archive.rows   all that the server had stored at one moment; see `feedgate_embedded::backup`
//!   DIR/secrets/       the secrets, for their owner alone
//!
//!   DIR.partial ─▶ rows from the running server ─▶ secrets ─▶ backup.json ─▶ synced ─▶ read back ─▶ renamed to DIR
//! ```
//!
//! Invariant: a directory with the name DIR is complete. Whatever fails before leaves at most a DIR.partial.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use feedgate_common::Millis;
use feedgate_embedded::backup::{self, Rows};
use feedgate_gateway::clock;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cli::Place;
use crate::client::Client;
use crate::effective;
use crate::kind::Kind;
use crate::settings::Settings;
use crate::stdout::print;

/// The name of the file that describes the others.
const MANIFEST: &str = "backup.json";

/// The name of the file of rows.
pub(crate) const ROWS: &str = "archive.rows";

/// The name of the directory of the secrets.
pub(crate) const SECRETS: &str = "secrets";

/// The version of the format of the directory.
const FORMAT: u32 = 1;

/// How many bytes of a file are in memory at a time.
const PIECE: usize = 256 << 10;

/// Says why a cluster has no backup of this kind, and what to use in its place.
const CLUSTER: &str = "is for a server that keeps everything in its own files; a cluster keeps its items in PostgreSQL, so \
                       use pg_basebackup and archived WAL, or pg_dump and pg_restore, and copy the directory of the \
                       secrets; a restore takes more steps, among them to empty Redis: see \"Backups of a cluster\" in \
                       docs/operate.md";

/// The contents of `backup.json`, which describes a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    /// The version of the program that made the backup.
    version: String,
    /// When the backup was asked for, in Unix ms: everything that was accepted before is in it.
    pub(crate) made_at: Millis,
    counts: Counts,
    /// The files besides this one, by their path in the backup.
    files: BTreeMap<String, Sum>,
    /// The SHA-256 of this file, computed with an empty text in this field.
    sha256: String,
}

/// How many rows of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    items: u64,
    devices: u64,
    other_rows: u64,
}

impl From<Rows> for Counts {
    fn from(rows: Rows) -> Self {
        Self { items: rows.items, devices: rows.positions, other_rows: rows.archive }
    }
}

/// The length and the checksum of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    bytes: u64,
    sha256: String,
}

impl Manifest {
    fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain fields") + "\n"
    }

    fn sealed(self) -> Self {
        let bare = Self { sha256: String::new(), ..self };
        Self { sha256: hex(Sha256::digest(bare.text())), ..bare }
    }

    /// Reads `backup.json` in `dir`, and checks that it is as it was written.
    fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(MANIFEST);
        let show = path.display();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!(
                    "there is no {show}, so {} is no backup; name a directory that feedgate backup has made",
                    dir.display()
                )
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => bail!(damaged(&path, "it is no text")),
            read => read.with_context(|| format!("{show} cannot be read"))?,
        };
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            version: String,
        }
        if let Ok(Head { format, version }) = serde_json::from_str(&text)
            && format > FORMAT
        {
            bail!(
                "{show} is of format {format}, and this program reads format {FORMAT}: use feedgate {version} or later"
            );
        }
        let manifest: Self = serde_json::from_str(&text).map_err(|error| anyhow::anyhow!(damaged(&path, &error)))?;
        ensure!(
            manifest.format == FORMAT && manifest.clone().sealed() == manifest && manifest.text() == text,
            damaged(&path, "its checksum is wrong")
        );
        Ok(manifest)
    }
}

/// The error for a file of a backup that is not as it was written.
fn damaged(path: &Path, why: impl std::fmt::Display) -> String {
    format!("{} is damaged: {why}. Nothing was restored from it; use another backup", path.display())
}

/// Makes a backup of the server that runs on the data directory of `place`, as the new directory `dir`.
pub(crate) async fn make(dir: PathBuf, place: Place) -> anyhow::Result<()> {
    let settings = effective::settings(&place)?;
    refuse_cluster("feedgate backup", &settings)?;
    ensure!(dir.symlink_metadata().is_err(), "{} exists; name a directory that does not exist yet", dir.display());
    let partial = partial(&dir)?;
    let client = Client::on(&settings)?;
    make_dir(&partial).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow::anyhow!(
            "{} exists: another backup is being made, or did not end; if none is, remove it",
            partial.display()
        ),
        ErrorKind::NotFound => {
            let parent = partial.parent().unwrap_or(&partial).display();
            anyhow::anyhow!("there is no directory {parent}, in which the backup is to be; make it first")
        }
        _ => anyhow::anyhow!("{} cannot be made: {error}", partial.display()),
    })?;
    let made = fill(&partial, &client, &settings.secrets_dir()).await.and_then(|manifest| {
        ensure!(dir.symlink_metadata().is_err(), "{} has come to exist meanwhile", dir.display());
        fs::rename(&partial, &dir).with_context(|| format!("{} cannot be renamed", partial.display()))?;
        Ok(manifest)
    });
    let Manifest { counts, files, .. } = made.inspect_err(|_| {
        // The rest of an unfinished backup is useless, and its name says that it is partial.
        _ = fs::remove_dir_all(&partial);
    })?;
    sync_dir(dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let bytes: u64 = files.values().map(|file| file.bytes).sum();
    print(&format!("{} holds {} items, {} bytes; it was read back and is whole", dir.display(), counts.items, bytes))
}

/// Fills the new directory `dir`, syncs it and reads it back.
async fn fill(dir: &Path, client: &Client, secrets: &Path) -> anyhow::Result<Manifest> {
    let made_at = clock::now();
    let rows = dir.join(ROWS);
    let mut file = create(&rows).with_context(|| format!("{} cannot be written", rows.display()))?;
    let mut write =
        |bytes: &[u8]| file.write_all(bytes).with_context(|| format!("{} cannot be written", rows.display()));
    client.stream("/v1/backup", &mut write).await?;
    file.sync_all().with_context(|| format!("{} cannot be synced", rows.display()))?;
    copy_secrets(secrets, &dir.join(SECRETS))?;
    let manifest = describe(dir, made_at)?;
    let read_back = verify(dir)?;
    ensure!(read_back == manifest, "{} does not hold what was written", dir.display());
    Ok(manifest)
}

/// Writes the manifest of what is in `dir`, as asked for at `made_at`. All files of the backup are durable then.
fn describe(dir: &Path, made_at: Millis) -> anyhow::Result<Manifest> {
    let counts = check_rows(&dir.join(ROWS)).context("the server's answer is not whole")?;
    let mut files = BTreeMap::new();
    for path in listed(dir)? {
        files.insert(path.clone(), sum(&dir.join(&path))?);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let manifest = Manifest { format: FORMAT, version, made_at, counts, files, sha256: String::new() }.sealed();
    write_file(&dir.join(MANIFEST), manifest.text().as_bytes())?;
    sync_dir(&dir.join(SECRETS))?;
    sync_dir(dir)?;
    Ok(manifest)
}

/// Checks every byte of the backup in `dir`. The memory used does not depend on the size of the backup.
pub(crate) fn verify(dir: &Path) -> anyhow::Result<Manifest> {
    let manifest = Manifest::read(dir)?;
    ensure!(manifest.files.contains_key(ROWS), damaged(&dir.join(MANIFEST), format_args!("it does not name {ROWS}")));
    for (path, noted) in &manifest.files {
        let path = dir.join(path);
        match path.try_exists() {
            Ok(false) => bail!(damaged(&path, "it is missing")),
            _ => ensure!(sum(&path)? == *noted, damaged(&path, "its checksum is wrong")),
        }
    }
    for path in listed(dir)? {
        let added = "it is not in the manifest";
        ensure!(manifest.files.contains_key(&path), damaged(&dir.join(path), added));
    }
    let rows = dir.join(ROWS);
    let counts = check_rows(&rows).map_err(|why| anyhow::anyhow!(damaged(&rows, why)))?;
    ensure!(counts == manifest.counts, damaged(&rows, "it has another number of rows than its manifest says"));
    Ok(manifest)
}

fn check_rows(path: &Path) -> anyhow::Result<Counts> {
    Ok(backup::check(io::BufReader::with_capacity(PIECE, File::open(path)?))?.into())
}

/// Fails if the settings are those of a cluster.
pub(crate) fn refuse_cluster(command: &str, settings: &Settings) -> anyhow::Result<()> {
    let kind = settings.kind().map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    ensure!(kind == Kind::Embedded, "{command} {CLUSTER}");
    Ok(())
}

/// The directory in which the backup is made before it is renamed to `dir`.
fn partial(dir: &Path) -> anyhow::Result<PathBuf> {
    let name = dir.file_name().with_context(|| format!("{} is no name of a new directory", dir.display()))?;
    let mut name = name.to_owned();
    name.push(".partial");
    Ok(dir.with_file_name(name))
}

/// The paths of the files in `dir`, as the manifest names them; without the manifest itself.
fn listed(dir: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = vec![ROWS.to_owned()];
    for entry in fs::read_dir(dir.join(SECRETS))? {
        paths.push(format!("{SECRETS}/{}", entry?.file_name().to_string_lossy()));
    }
    Ok(paths)
}

/// Copies the secrets in the directory `from` into the new directory `to`. Skips names that begin with a dot: these are
/// unfinished files, or files of the system.
pub(crate) fn copy_secrets(from: &Path, to: &Path) -> anyhow::Result<()> {
    make_dir(to).with_context(|| format!("{} cannot be made", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.starts_with('.'));
        let Some(name) = name.filter(|_| path.is_file()) else { continue };
        let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        write_file(&to.join(name), &bytes)?;
    }
    Ok(())
}

fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// A new file for its owner alone.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.with_context(|| format!("{} cannot be written", path.display()))
}

pub(crate) fn sync_dir(dir: &Path) -> anyhow::Result<()> {
    File::open(dir).and_then(|dir| dir.sync_all()).with_context(|| format!("{} cannot be synced", dir.display()))
}

/// The length and the checksum of a file, read from the disk and not from the system's cache as far as the file is
/// synced.
fn sum(path: &Path) -> anyhow::Result<Sum> {
    let summed = File::open(path).and_then(|mut file| {
        // A failure here is no error: a file system in memory has no cached pages to drop.
        _ = fadvise(&file, 0, None, Advice::DontNeed);
        let (mut sum, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(Sum { bytes, sha256: hex(sum.finalize()) }),
                read => {
                    sum.update(&piece[..read]);
                    bytes += read as u64;
                }
            }
        }
    });
    summed.with_context(|| format!("{} cannot be read", path.display()))
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(crate) mod tests;
