//! Lines of notifications. Stores that were made before these tables existed have no rows in them.

use compact_str::CompactString;
use feedgate_common::{ItemId, UserNo};

use super::{fields, table};
use crate::codec::Short;

table! {
    /// The lines, each by the id of its first item.
    Lines: b'7', Archive, ItemId => LineRow
}

table! {
    /// The newest line of each reader and group.
    LineGroups: b'8', Archive, (UserNo, CompactString) => ItemId
}

table! {
    /// The lines of each reader.
    LinesOf: b'9', Archive, (UserNo, ItemId) => ()
}

table! {
    /// The members of each line, by their places in the line.
    Members: b'W', Archive, (ItemId, u64) => MemberRow
}

table! {
    /// The line and the place of each deed that is a member, by the key of the deed.
    MemberKeys: b'E', Archive, CompactString => (ItemId, u64)
}

/// What is stored of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineRow {
    pub(crate) reader: UserNo,
    pub(crate) item: ItemId,
    pub(crate) count: u64,
    pub(crate) next: u64,
    pub(crate) kind: Short,
    pub(crate) group: CompactString,
}

fields!(LineRow { reader, item, count, next, kind, group });

/// What is stored of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberRow {
    pub(crate) actor: UserNo,
    pub(crate) key: Short,
    /// JSON: what a notification of this deed alone would say.
    pub(crate) told: CompactString,
}

fields!(MemberRow { actor, key, told });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn the_rows_of_lines_come_back_as_they_were() {
        let (reader, item) = (UserNo(3), ItemId(9));
        let line = LineRow { reader, item, count: 2, next: 7, kind: Short("like".into()), group: "g".into() };
        assert_eq!(value_of(&bytes_of(&line)), Some(line));
        let member = MemberRow { actor: UserNo(4), key: Short("k".into()), told: "{\"a\" : 1}".into() };
        assert_eq!(value_of(&bytes_of(&member)), Some(member));
    }
}
