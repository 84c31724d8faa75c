//! Checks whether a store is sound: the store of a stopped server, a backup, or PostgreSQL. Changes nothing in it.
//!
//! ```text
//!   data directory ──────────────────────────────┐
//!   backup ─▶ every byte checked ─▶ restored beside it ─┴─▶ checks of files, counts and sets ─┬▶ report, and exit code
//!   PostgreSQL ─▶ checks of counts and sets in one snapshot ──────────────────────────────────┘
//!   both, if sound ─▶ some inboxes, or all, compared with what their feeds are to show
//! ```
//!
//! A backup has no inboxes: they are built when their readers come.

use std::fs::{self, DirBuilder, File};
use std::io::BufReader;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
#[cfg(feature = "cluster")]
use std::time::Duration;

use anyhow::{Context, ensure};
use feedgate_common::doctor::{Check, Report};
use feedgate_common::feed::{Changes, Feeds};
use feedgate_common::{Archive, Inboxes};
use feedgate_embedded::{backup, doctor};
use feedgate_gateway::clock;

use crate::backup::{ROWS, verify};
use crate::cli::{Most, Place};
use crate::kind::Kind;
use crate::settings::Settings;
use crate::stdout::print;
use crate::{effective, told};

/// How long to wait before an inbox is looked at again, since a server may be about to change it.
#[cfg(feature = "cluster")]
const AGAIN: Duration = Duration::from_secs(1);

/// The exit code if something is wrong with the store.
const FINDINGS: u8 = 1;

/// The exit code if the store could not be looked at.
const NOT_LOOKED: u8 = 2;

/// Checks the data directory of `place`, or the backup in a directory. The copy that is looked at is made in `scratch`;
/// if that is not given, beside the directory that is checked. At most `inboxes` inboxes are compared with the Archive.
pub(crate) fn run(backup: Option<PathBuf>, scratch: Option<PathBuf>, inboxes: Most, place: &Place) -> ExitCode {
    match look(backup, scratch, inboxes, place) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FINDINGS),
        Err(error) => {
            eprintln!("feedgate: {}", told(&error));
            ExitCode::from(NOT_LOOKED)
        }
    }
}

/// Prints the report. Answers whether the store is sound.
fn look(backup: Option<PathBuf>, scratch: Option<PathBuf>, inboxes: Most, place: &Place) -> anyhow::Result<bool> {
    if let Some(from) = backup {
        let scratch = scratch.map_or_else(|| beside(&from), Ok)?;
        return of_backup(&from, &scratch);
    }
    let settings = effective::settings(place)?;
    match settings.kind().map_err(|problems| anyhow::anyhow!(problems.join("\n")))? {
        Kind::Embedded => {
            let scratch = scratch.map_or_else(|| beside(&settings.data), Ok)?;
            let mut found = doctor::check(&settings.data, &scratch)?;
            if found.is_sound() && inboxes != Most::Of(0) {
                found.checks.push(inboxes_of_files(&settings, &scratch, inboxes)?);
            }
            report(&found)
        }
        Kind::Cluster => {
            ensure!(scratch.is_none(), "--scratch is for the copy of files, and PostgreSQL is looked at where it is");
            report(&of_cluster(&settings, inboxes)?)
        }
    }
}

/// Compares inboxes of a copy of the data directory with the Archive. Blocks until it is done.
fn inboxes_of_files(settings: &Settings, scratch: &Path, most: Most) -> anyhow::Result<Check> {
    crate::runtime()?.block_on(async {
        let copy = doctor::copy(&settings.data, scratch, settings.buckets)?;
        let (archive, inboxes) = (copy.stores.archive.clone(), copy.stores.inboxes.clone());
        // Nobody changes the copy, so a difference stays.
        compared(settings, (archive, inboxes), most, async || {}).await
    })
}

/// Compares inboxes with the Archive. `pause` is awaited before an inbox that differs is looked at again.
async fn compared(
    settings: &Settings,
    (archive, inboxes): (Arc<dyn Archive>, Arc<dyn Inboxes>),
    most: Most,
    pause: impl AsyncFn(),
) -> anyhow::Result<Check> {
    let changes = Changes::new(Arc::new(Feeds::new(archive, inboxes, settings.backfill.newest())));
    let most = match most {
        Most::All => None,
        Most::Of(most) => Some(most),
    };
    Ok(changes.compare(most, pause).await?)
}

/// Looks into PostgreSQL and into Redis, while servers may go on. Blocks until it is done.
#[cfg(feature = "cluster")]
fn of_cluster(settings: &Settings, inboxes: Most) -> anyhow::Result<Report> {
    crate::runtime()?.block_on(async {
        let tls = settings.stores_tls.files();
        tls.check()?;
        let mut found = feedgate_postgres::doctor::check_with(settings.archive_url.reveal(), &tls).await?;
        if found.is_sound() && inboxes != Most::Of(0) {
            let stores = crate::cluster::open_feeds(settings).await?;
            found.checks.push(compared(settings, stores, inboxes, async || tokio::time::sleep(AGAIN).await).await?);
        }
        Ok(found)
    })
}

/// A build without PostgreSQL accepts no settings that name a PostgreSQL, so this is never called.
#[cfg(not(feature = "cluster"))]
fn of_cluster(_: &Settings, _: Most) -> anyhow::Result<Report> {
    anyhow::bail!("this build holds the embedded stores only")
}

fn of_backup(from: &Path, scratch: &Path) -> anyhow::Result<bool> {
    let rows = from.join(ROWS);
    ensure!(rows.is_file(), "{} is no backup: it has no {ROWS}", from.display());
    if let Err(error) = verify(from) {
        print(&format!("WRONG  backup: {}", told(&error)))?;
        return Ok(false);
    }
    // Everybody who may enter this directory could read the restored data, so only the owner may enter it.
    let made = DirBuilder::new().mode(0o700).create(scratch);
    made.with_context(|| format!("{} cannot be made", scratch.display()))?;
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

/// The name of a directory beside `dir`, which no other run uses.
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
