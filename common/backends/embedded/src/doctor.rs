//! Looks whether a store of a stopped server is sound, and changes nothing of it.
//!
//! ```text
//!   lock the directory ─▶ files against manifest and note ─▶ a copy of the Archive beside it ─▶ open the copy ─▶ checks
//!                                                          └▶ a copy of all stores ─▶ open it, for who compares inboxes
//! ```
//!
//! Opening a store writes into its directory, so what is opened is a copy. Tables are never changed once they are
//! written; they are linked, and only journals and small files are copied.
//!
//! A check walks through tables by their keys and keeps no rows, so its memory does not grow with the store.

mod checks;
mod direct;
mod lists;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use feedgate_common::doctor::{Check, Report};
use feedgate_common::error::{Result, StoreError};

use crate::database::Database;
use crate::home::{self, UNFINISHED};
use crate::manifest::Manifest;
use crate::{Embedded, Opening, answered, archive};

/// Checks the stores of the data directory `dir`. `scratch` is a directory that does not exist; it is made on the same
/// disk, so that tables can be linked, and removed in the end. Blocks for as long as it takes to read the Archive.
///
/// # Errors
/// `Unavailable` if `dir` is no data directory, if a process uses it, or if the disk does not answer. What is wrong
/// with the store is no error but a finding.
pub fn check(dir: &Path, scratch: &Path) -> Result<Report> {
    let unusable = |what: &Path, error: io::Error| {
        StoreError::unavailable(format_args!("{} cannot be used: {error}", what.display())).with_source(error)
    };
    let place = dir.join("archive");
    if !dir.join("lock").exists() || !place.is_dir() {
        let none = format_args!("{} is no data directory of a server that has run", dir.display());
        return Err(StoreError::unavailable(none));
    }
    let _lock = home::lock(dir)?;
    let mut report = Report::default();
    report.checks.push(files(dir, &place).map_err(|error| unusable(dir, error))?);
    private(scratch).map_err(|error| unusable(scratch, error))?;
    let scratch = Scratch(scratch);
    let copy = scratch.0.join("archive");
    link(&place, &copy).map_err(|error| unusable(scratch.0, error))?;
    match Database::open(&copy) {
        Ok(database) => {
            let view = database.view()?;
            let mut format = Check::of("format");
            format.look();
            if let Err(error) = archive::check_format(&*view) {
                format.find(error.to_string());
                report.checks.push(format);
                return Ok(report);
            }
            report.checks.push(format);
            checks::all(&view, &mut report);
        }
        Err(StoreError::Corrupt(why)) => {
            let mut opening = Check::of("opening the archive");
            opening.look();
            opening.find(why.to_string());
            report.checks.push(opening);
        }
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// A copy of the stores of a stopped server, open. It is removed when this is dropped.
pub struct Copied<'a> {
    /// The stores of the copy. They are to be dropped before this.
    pub stores: Embedded,
    _scratch: Scratch<'a>,
}

/// Opens a copy of all stores of the data directory `dir`, made in `scratch` as [`check`] makes one of the Archive;
/// inboxes are copied byte by byte. `buckets` is what the server was started with. Blocks, for as long as it takes to
/// copy and to open them.
///
/// # Errors
/// `Unavailable` if a process uses `dir` or the disk does not answer; `Corrupt` if the stores are damaged.
pub fn copy<'a>(dir: &Path, scratch: &'a Path, buckets: u16) -> Result<Copied<'a>> {
    let unusable = |error: io::Error| {
        let what = format_args!("{} cannot be copied to {}: {error}", dir.display(), scratch.display());
        StoreError::unavailable(what).with_source(error)
    };
    let _lock = home::lock(dir)?;
    private(scratch).map_err(unusable)?;
    let scratch = Scratch(scratch);
    for part in ["archive", "inboxes"] {
        if dir.join(part).is_dir() {
            link(&dir.join(part), &scratch.0.join(part)).map_err(unusable)?;
        }
    }
    let stores = Embedded::open_of(scratch.0, dir, Opening::of(buckets))?;
    Ok(Copied { stores, _scratch: scratch })
}

/// Makes a directory that only its owner enters: the files that are copied into it may be readable for everybody.
fn private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// A directory that is removed when this is dropped.
struct Scratch<'a>(&'a Path);

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // Files that stay behind are of no use, and an error here must not replace the report.
        _ = fs::remove_dir_all(self.0);
    }
}

/// Whether all files are there that the manifest names, and whether journals are whole as far as was answered.
fn files(dir: &Path, place: &Path) -> io::Result<Check> {
    let mut files = Check::of("files");
    files.look();
    if dir.join(UNFINISHED).exists() {
        files.find("the directory was to be restored, and that did not come to its end".to_owned());
    }
    match Manifest::read(dir) {
        Ok(manifest) => {
            files.look();
            if let Some(missing) = manifest.and_then(|manifest| manifest.missing(place)) {
                files.find(format!("{} is missing", missing.display()));
            }
        }
        Err(error) => files.find(error.to_string()),
    }
    files.look();
    if let Some(lost) = answered::lost(place)? {
        files.find(lost);
    }
    Ok(files)
}

/// Makes a copy of a store in which only tables are the files of the store itself.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let tables = from.file_name().is_some_and(|name| name == "tables");
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link(&source, &target)?;
        } else if !tables || fs::hard_link(&source, &target).is_err() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
