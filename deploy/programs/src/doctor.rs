//! Whether a store is sound: that of a stopped server, a backup, or PostgreSQL. Nothing of it is changed.
//!
//! ```text
//!   data directory ──────────────────────────────┐
//!   backup ─▶ every byte checked ─▶ restored beside it ─┴─▶ checks of files, counts and sets ─┬▶ report, and exit code
//!   PostgreSQL ─▶ checks of counts and sets in one snapshot ──────────────────────────────────┘
//! ```

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use feedgate_common::doctor::{Check, Report};
use feedgate_embedded::{backup, doctor};
use feedgate_gateway::clock;

use crate::backup::{ROWS, verify};
use crate::cli::Place;
use crate::kind::Kind;
use crate::settings::Settings;
use crate::stdout::print;
use crate::{effective, told};

/// The exit code if something is wrong with the store.
const FINDINGS: u8 = 1;

/// The exit code if the store could not be looked at.
const NOT_LOOKED: u8 = 2;

/// Checks the data directory of `place`, or the backup in a directory. `scratch` is where the copy is made that is
/// looked at; if none is given, beside what is checked.
pub(crate) fn run(backup: Option<PathBuf>, scratch: Option<PathBuf>, place: &Place) -> ExitCode {
    match look(backup, scratch, place) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FINDINGS),
        Err(error) => {
            eprintln!("feedgate: {}", told(&error));
            ExitCode::from(NOT_LOOKED)
        }
    }
}

/// Prints the report. Answers whether the store is sound.
fn look(backup: Option<PathBuf>, scratch: Option<PathBuf>, place: &Place) -> anyhow::Result<bool> {
    if let Some(from) = backup {
        let scratch = scratch.map_or_else(|| beside(&from), Ok)?;
        return of_backup(&from, &scratch);
    }
    let settings = effective::settings(place)?;
    match settings.kind().map_err(|problems| anyhow::anyhow!(problems.join("\n")))? {
        Kind::Embedded => {
            let scratch = scratch.map_or_else(|| beside(&settings.data), Ok)?;
            report(&doctor::check(&settings.data, &scratch)?)
        }
        Kind::Cluster => {
            ensure!(scratch.is_none(), "--scratch is for the copy of files, and PostgreSQL is looked at where it is");
            report(&of_postgres(&settings)?)
        }
    }
}

/// Looks into PostgreSQL, while servers may go on. Blocks until it is done.
#[cfg(feature = "cluster")]
fn of_postgres(settings: &Settings) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tls = settings.stores_tls.files();
    tls.check()?;
    Ok(runtime.block_on(feedgate_postgres::doctor::check_with(settings.archive_url.reveal(), &tls))?)
}

/// A build without PostgreSQL takes no settings that name one.
#[cfg(not(feature = "cluster"))]
fn of_postgres(_: &Settings) -> anyhow::Result<Report> {
    anyhow::bail!("this build holds the embedded stores only")
}

fn of_backup(from: &Path, scratch: &Path) -> anyhow::Result<bool> {
    let rows = from.join(ROWS);
    ensure!(rows.is_file(), "{} is no backup: it has no {ROWS}", from.display());
    if let Err(error) = verify(from) {
        print(&format!("WRONG  backup: {}", told(&error)))?;
        return Ok(false);
    }
    fs::create_dir(scratch).with_context(|| format!("{} cannot be made", scratch.display()))?;
    let checked = restored(&rows, scratch);
    fs::remove_dir_all(scratch).with_context(|| format!("{} cannot be removed", scratch.display()))?;
    report(&checked?)
}

/// The report of a backup, whose rows become a store in `scratch`.
fn restored(rows: &Path, scratch: &Path) -> anyhow::Result<Report> {
    let data = scratch.join("data");
    fs::create_dir(&data).with_context(|| format!("{} cannot be made", data.display()))?;
    let file = File::open(rows).with_context(|| format!("{} cannot be read", rows.display()))?;
    backup::restore(&data, BufReader::with_capacity(256 << 10, file), clock::now())?;
    backup::finish(&data)?;
    Ok(doctor::check(&data, &scratch.join("copy"))?)
}

/// A directory beside another one that no other run takes.
fn beside(dir: &Path) -> anyhow::Result<PathBuf> {
    let whole = dir.canonicalize().with_context(|| format!("{} cannot be used", dir.display()))?;
    let name = whole.file_name().with_context(|| format!("{} has no name", whole.display()))?;
    let mut name = name.to_owned();
    name.push(format!(".doctor-{}", std::process::id()));
    Ok(whole.with_file_name(name))
}

fn report(report: &Report) -> anyhow::Result<bool> {
    for check in &report.checks {
        let Check { name, looked_at, wrong, findings } = check;
        match wrong {
            0 => print(&format!("ok     {name}: {looked_at} looked at"))?,
            _ => print(&format!("WRONG  {name}: {wrong} wrong, {looked_at} looked at"))?,
        }
        for finding in findings {
            print(&format!("         {finding}"))?;
        }
        let hidden = wrong - findings.len() as u64;
        if hidden > 0 {
            print(&format!("         and {hidden} more"))?;
        }
    }
    let age = |oldest: i64| format!(", the oldest since {} s", (clock::now() - oldest).max(0) / 1000);
    let oldest = report.oldest.map(age).unwrap_or_default();
    print(&format!("{} events are outstanding{oldest}; the workers go on with them", report.outstanding))?;
    print(if report.is_sound() { "the store is sound" } else { "the store is NOT sound" })?;
    Ok(report.is_sound())
}
