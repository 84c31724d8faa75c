//! Bodies that items had before they were edited. Stores that were made before this table existed have no rows in it.

use compact_str::CompactString;
use feedgate_common::{ItemId, Millis};

use super::{fields, table};

table! {
    /// The replaced bodies of each living item, by the version that the item had when the body was replaced.
    Versions: b',', Items, (ItemId, u32) => VersionRow
}

/// A body that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionRow {
    /// When the body was replaced, in Unix ms.
    pub(crate) at: Millis,
    /// The body, as the JSON text that the backend sent.
    pub(crate) body: CompactString,
}

fields!(VersionRow { at, body });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn s13_a_version_comes_back_as_it_was() {
        for body in ["1", "{\"text\": \"小明\"}"] {
            let row = VersionRow { at: -5, body: body.into() };
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
    }
}
