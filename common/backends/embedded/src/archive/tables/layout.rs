//! The layout that was fixed when the Archive was created, and the inbox store with which the Archive last worked.

use compact_str::CompactString;
use feedgate_common::error::Result;

use super::{fields, table};
use crate::format::of_another;

/// The format of all rows of the Archive, as their tables encode them. A store of another format is not opened.
pub(crate) const FORMAT: u16 = 2;

table! {
    /// The format and the layout of the rows.
    Layout: b'1', Archive, () => LayoutRow
}

table! {
    /// The incarnation of the inbox store with which the Archive last worked.
    Incarnation: b'2', Archive, () => CompactString
}

/// What is written once, when the store is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutRow {
    /// The [`FORMAT`] of the program that made the store.
    pub(crate) format: u16,
    /// The number of buckets into which followers are laid out, 1 at least.
    pub(crate) buckets: u16,
}

impl LayoutRow {
    /// The number of buckets, if this version reads the format; else `Corrupt`.
    pub(crate) fn known(self) -> Result<u16> {
        let Self { format, buckets } = self;
        (format == FORMAT).then_some(buckets).ok_or_else(|| of_another("the Archive", format.into(), FORMAT.into()))
    }
}

fields!(LayoutRow { format, buckets });
