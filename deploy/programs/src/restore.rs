//! Makes a new data directory from a backup.
//!
//! ```text
//!   every byte of the backup is checked ─▶ the directory is empty ─▶ rows into new stores ─▶ secrets ─▶ finished
//! ```
//!
//! Invariant: a directory that is not finished is opened by no server (see `feedgate_embedded::backup`).

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use anyhow::{Context, ensure};
use feedgate_embedded::backup;
use feedgate_gateway::clock;

use crate::backup::{ROWS, SECRETS, copy_secrets, refuse_cluster, sync_dir, verify};
use crate::cli::Place;
use crate::stdout::print;
use crate::{data, effective};

/// Makes the data directory of `place` from the backup in the directory `from`.
pub(crate) fn run(from: &Path, place: &Place) -> anyhow::Result<()> {
    let settings = effective::settings(place)?;
    refuse_cluster("feedgate restore", &settings)?;
    let (data, secrets) = (&settings.data, settings.secrets_dir());
    ensure!(
        is_empty(data)?,
        "the data directory {} is not empty, and a restore writes over nothing; name an empty or a new one with --data",
        data.display()
    );
    let manifest = verify(from)?;
    let data = data::make(data)?;
    let path = from.join(ROWS);
    let rows = File::open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let broken = || format!("{} is of no use now: empty it before you try again", data.display());
    let restored =
        backup::restore(&data, BufReader::with_capacity(256 << 10, rows), clock::now()).with_context(broken)?;
    // Secrets that somebody keeps in another directory may exist already.
    let kept = !is_empty(&secrets)?;
    if !kept {
        _ = fs::remove_dir(&secrets);
        copy_secrets(&from.join(SECRETS), &secrets).and_then(|()| sync_dir(&secrets)).with_context(broken)?;
    }
    backup::finish(&data)?;
    let age = (clock::now() - manifest.made_at).max(0) / 60_000;
    print(&format!(
        "{} holds {} items as they were {age} minutes ago; start it with: feedgate serve --data {0}",
        data.display(),
        restored.items
    ))?;
    match kept {
        true => print(&format!("the secrets in {} were there and are kept", secrets.display())),
        false => Ok(()),
    }
}

/// Whether the directory does not exist, or is empty.
fn is_empty(dir: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        entries => Ok(entries.with_context(|| format!("{} cannot be used", dir.display()))?.next().is_none()),
    }
}
