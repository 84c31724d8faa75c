//! Rows with a type: what stands in the store, apart from how it is read and written.
//!
//! A table is a listing in order of its key. Tables of one [`Space`] share an LSM tree and are told
//! apart by the first byte of the key, so that the store has few trees to keep in memory.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use feedgate_common::StoreError;

use crate::codec::{Code, bytes_of, value_of};

/// A tree of the store. Few, each with its own write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Users, outboxes, edges and events: small rows, read in ranges.
    Archive,
    /// Items with their bodies: large rows, read one by one.
    Items,
    /// Fan-out work.
    Jobs,
    /// Positions of devices.
    Positions,
}

impl Space {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Archive, Self::Items, Self::Jobs, Self::Positions];

    /// Its directory in the store; never changed, since the data is there.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Items => "items",
            Self::Jobs => "jobs",
            Self::Positions => "positions",
        }
    }
}

/// A kind of row. Implemented by an empty type that stands for the table.
pub trait Table: 'static {
    /// The tree it lives in.
    const SPACE: Space;
    /// The first byte of its keys, unique in its space and never changed.
    const TAG: u8;
    /// What an error calls it.
    const NAME: &'static str;
    /// What orders the rows.
    type Key: Code + Debug;
    /// What stands there.
    type Row: Code;
}

pub(crate) fn key_bytes<T: Table>(key: &T::Key) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    out.push(T::TAG);
    key.put(&mut out);
    out
}

pub(crate) fn row_bytes<T: Table>(row: &T::Row) -> Vec<u8> {
    bytes_of(row)
}

/// The bounds of a range of keys, kept within the table.
pub(crate) fn range_bytes<T: Table>(range: impl RangeBounds<T::Key>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let from = match range.start_bound() {
        Bound::Included(key) => Bound::Included(key_bytes::<T>(key)),
        Bound::Excluded(key) => Bound::Excluded(key_bytes::<T>(key)),
        Bound::Unbounded => Bound::Included(vec![T::TAG]),
    };
    let to = match range.end_bound() {
        Bound::Included(key) => Bound::Included(key_bytes::<T>(key)),
        Bound::Excluded(key) => Bound::Excluded(key_bytes::<T>(key)),
        Bound::Unbounded => Bound::Excluded(vec![T::TAG + 1]),
    };
    (from, to)
}

/// The key behind stored bytes.
pub(crate) fn key_of<T: Table>(bytes: &[u8]) -> Result<T::Key, StoreError> {
    let key = bytes.strip_prefix(&[T::TAG]).and_then(value_of);
    key.ok_or_else(|| damaged::<T>("a key", &format_args!("{bytes:02x?}"), bytes))
}

/// The row behind stored bytes.
pub(crate) fn row_of<T: Table>(key: &T::Key, bytes: &[u8]) -> Result<T::Row, StoreError> {
    value_of(bytes).ok_or_else(|| damaged::<T>("the row", &format_args!("{key:?}"), bytes))
}

fn damaged<T: Table>(what: &str, which: &dyn std::fmt::Display, bytes: &[u8]) -> StoreError {
    let start = &bytes[..bytes.len().min(32)];
    StoreError::corrupt(format_args!("{what} {which} of {} has {} bytes, {start:02x?}…", T::NAME, bytes.len()))
}
