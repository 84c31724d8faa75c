//! A new data directory from a file of rows, which a running server has given ([`Transfer::copy`]).
//!
//! A restored store goes on in greater epochs than any that was given before or after the copy, and without an inbox.
//! So each device is told to load its feed again, also a device that was ahead of the copy. The log for other programs
//! starts anew for the same reason: each of these programs is told that its place is gone.
//!
//! [`Transfer::copy`]: feedgate_common::archive::Transfer::copy

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use feedgate_common::Millis;
use feedgate_common::error::{Result, StoreError};

use crate::database::Database;
use crate::home::{self, UNFINISHED};
use crate::request::Durability;
pub use crate::rows::{Rows, check};
use crate::{archive, disk, rows};

/// Makes the stores of the data directory `dir` from a file of rows. `dir` exists and has no stores yet. `now` is the
/// time of day. Until [`finish`] no server opens the directory. Blocks the thread until all is written and durable.
/// Uses memory for one block of the file and for what the store buffers.
///
/// # Errors
/// The file is refused as [`check`] refuses it. `Corrupt` if the rows are of a format of the Archive that this version
/// does not read. `Unavailable` if another process uses `dir`, or if `dir` cannot be written. After an error `dir`
/// holds a part of the stores and is of no use.
pub fn restore(dir: &Path, file: impl Read, now: Millis) -> Result<Rows> {
    let lock = home::lock(dir)?;
    disk::write_whole(dir, UNFINISHED, |_| Ok(())).map_err(|error| unwritten(dir, error))?;
    let place = dir.join("archive");
    let database = Database::open(&place)?;
    let rows = rows::read(file, |rows| {
        let kept = rows.into_iter().filter(|(space, key, _)| !archive::is_announcement(*space, key));
        let kept: Vec<_> = kept.map(|(space, key, value)| (space, key.to_vec(), value.to_vec())).collect();
        home::wait(database.write(Durability::Buffered, |tx| {
            kept.into_iter().for_each(|(space, key, value)| tx.put_raw(space, key, value));
            Ok(())
        }))
    })?;
    let counters = home::wait(database.write(Durability::Synced, move |tx| {
        archive::check_format(tx)?;
        archive::go_on(tx, least_epoch(now))?;
        archive::counters(tx)
    }))?;
    drop(database);
    home::note(dir, counters)?;
    home::make_names_durable(dir)?;
    drop(lock);
    Ok(rows)
}

/// An epoch that is greater than any which a server restored earlier has given: each millisecond of the time of day has
/// room for a thousand epochs. A copy may be restored twice, and the first of these servers may have told devices its
/// epochs.
fn least_epoch(now: Millis) -> u64 {
    now.max(0).unsigned_abs() << 10
}

/// Says that the restored directory `dir` is whole, so that a server opens it.
///
/// # Errors
/// `Unavailable` if the directory cannot be written.
pub fn finish(dir: &Path) -> Result<()> {
    // Other files that were put into the directory are durable before the mark is removed.
    let synced = disk::sync_dir(dir);
    let removed = synced.and_then(|()| fs::remove_file(dir.join(UNFINISHED))).and_then(|()| disk::sync_dir(dir));
    removed.map_err(|error| unwritten(dir, error))
}

fn unwritten(dir: &Path, error: io::Error) -> StoreError {
    StoreError::unavailable(format_args!("cannot write {}: {error}", dir.display())).with_source(error)
}

#[cfg(test)]
mod tests;
