//! Tables: rows of one type each, in the order of their keys.
//!
//! Tables of one [`Space`] share an LSM tree and are told apart by the first byte of the key, so that the store has few
//! trees to keep in memory.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use feedgate_common::StoreError;

use crate::codec::{Code, bytes_of, value_of};

/// A tree of the store. There are few trees, since each has a write buffer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Users, outboxes, edges and events: small rows, read in ranges.
    Archive,
    /// Items with their bodies: large rows, read one by one.
    Items,
    /// The positions of devices in their feeds.
    Positions,
}

impl Space {
    /// All trees, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Archive, Self::Items, Self::Positions];

    /// The name of the tree in the store. The name never changes, since stored data is found by it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Items => "items",
            Self::Positions => "positions",
        }
    }
}

/// A kind of row. An empty type that stands for the table implements this trait.
pub trait Table: 'static {
    /// The tree that holds the rows.
    const SPACE: Space;
    /// The first byte of each key. The byte is unique in the tree and never changes.
    const TAG: u8;
    /// The name of the table in errors.
    const NAME: &'static str;
    /// The key, which orders the rows.
    type Key: Code + Debug;
    /// The row that stands at a key.
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

/// The bytes of a range of keys, with bounds that keep it within the table.
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

/// The key in stored bytes; `Corrupt` if they are no key of this table.
pub(crate) fn key_of<T: Table>(bytes: &[u8]) -> Result<T::Key, StoreError> {
    let key = bytes.strip_prefix(&[T::TAG]).and_then(value_of);
    key.ok_or_else(|| damaged::<T>("a key", &format_args!("{bytes:02x?}"), bytes))
}

/// The row in stored bytes; `Corrupt` if they are no row of this table.
pub(crate) fn row_of<T: Table>(key: &T::Key, bytes: &[u8]) -> Result<T::Row, StoreError> {
    value_of(bytes).ok_or_else(|| damaged::<T>("the row", &format_args!("{key:?}"), bytes))
}

fn damaged<T: Table>(what: &str, which: &dyn std::fmt::Display, bytes: &[u8]) -> StoreError {
    let start = &bytes[..bytes.len().min(32)];
    StoreError::corrupt(format_args!("{what} {which} of {} has {} bytes, {start:02x?}…", T::NAME, bytes.len()))
}
