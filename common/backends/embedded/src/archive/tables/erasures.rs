//! Erasures of users. Stores that were made before these tables existed have no rows in them.

use compact_str::CompactString;
use feedgate_common::{Millis, UserNo};

use super::{fields, table};

table! {
    /// All erasures by number, also those that are finished: they are receipts.
    Erasures: b'5', Archive, u64 => ErasureRow
}

table! {
    /// The erasure of each user that is not finished.
    OpenErasures: b'6', Archive, UserNo => u64
}

/// What is stored of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErasureRow {
    pub(crate) user: UserNo,
    pub(crate) accepted_at: Millis,
    /// How far the erasure has come: the text of a [`feedgate_common::erase::State`].
    pub(crate) state: CompactString,
}

fields!(ErasureRow { user, accepted_at, state });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn an_erasure_comes_back_as_it_was() {
        let row = ErasureRow { user: UserNo(3), accepted_at: 5, state: "{\"stage\":\"items\"}".into() };
        assert_eq!(value_of(&bytes_of(&row)), Some(row));
    }
}
