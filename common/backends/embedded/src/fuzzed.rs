//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

use crate::archive::tables::*;
use crate::codec::{Code, bytes_of, value_of};
use crate::table::Table;
use crate::{inboxes, rows};

/// Steps, which are the entries of the inboxes' log.
pub fn steps(bytes: &[u8]) {
    inboxes::record::fuzzed(bytes);
}

/// A file of the inboxes' log.
pub fn segments(bytes: &[u8]) {
    inboxes::segment::fuzzed(bytes);
}

/// A snapshot of a bucket of inboxes.
pub fn snapshots(bytes: &[u8]) {
    inboxes::snapshot::fuzzed(bytes);
}

/// A file of rows, as a backup has it: once as it came, and once as one whole block of rows.
pub fn backups(bytes: &[u8]) {
    rows::fuzzed(bytes);
}

/// [`of`] for each of these tables.
macro_rules! tables {
    ($($table:ident)*) => {
        [$(of::<$table> as fn(&[u8])),*]
    };
}

/// Rows of the Archive. The first byte names the table, and the others are a key and a row of it.
pub fn archive_rows(bytes: &[u8]) {
    let Some((table, bytes)) = bytes.split_first() else { return };
    let tables = every_table!(tables);
    tables[usize::from(*table) % tables.len()](bytes);
}

/// Bytes that can be read as a key or a row of the table are written back as they came.
fn of<T: Table>(bytes: &[u8]) {
    same::<T::Key>(T::NAME, bytes);
    same::<T::Row>(T::NAME, bytes);
}

fn same<T: Code>(name: &str, bytes: &[u8]) {
    if let Some(value) = value_of::<T>(bytes) {
        assert_eq!(bytes_of(&value), bytes, "{name}");
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { steps segments snapshots backups archive_rows }
