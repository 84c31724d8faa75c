//! Lists of users, and the audiences of items. Stores that were made before these tables existed have no rows in them.

use compact_str::CompactString;
use feedgate_common::{ItemId, Millis, UserNo};

use super::table;
use crate::codec::Code;

table! {
    /// Since when a user is on a list, by the owner of the list, and the list with the member.
    Listed: b'F', Archive, (UserNo, ListPlace) => Millis
}

table! {
    /// The lists on which a user is: the member, the owner of the list, the list.
    Listing: b'U', Archive, (UserNo, UserNo, CompactString) => ()
}

table! {
    /// The lists of each user, each with the number of its members.
    ListHeads: b'@', Archive, (UserNo, CompactString) => u64
}

table! {
    /// The audience of each item that is narrowed. The audience stays when the item is deleted, since the record of the
    /// delete goes to the same readers.
    Audiences: b'&', Archive, ItemId => AudienceRow
}

/// A list and a member of it. The members of one list stand together, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListPlace {
    pub(crate) list: CompactString,
    pub(crate) member: UserNo,
}

/// The length of the list's name stands before the name, so lists are ordered by length first.
impl Code for ListPlace {
    fn put(&self, out: &mut Vec<u8>) {
        let length = u8::try_from(self.list.len()).expect("the name of a list is short");
        length.put(out);
        self.list.put(out);
        self.member.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = u8::take(from)?;
        let (text, rest) = from.split_at_checked(length.into())?;
        *from = rest;
        Some(Self { list: std::str::from_utf8(text).ok()?.into(), member: UserNo::take(from)? })
    }
}

/// The readers of an item, ascending by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AudienceRow(pub(crate) Vec<UserNo>);

impl Code for AudienceRow {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|reader| reader.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut readers = Vec::with_capacity(from.len() / 4);
        while !from.is_empty() {
            readers.push(UserNo::take(from)?);
        }
        Some(Self(readers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn s9_a_list_and_an_audience_come_back_as_they_were() {
        for list in ["a", "close", &"x".repeat(64)] {
            let place = ListPlace { list: list.into(), member: UserNo(7) };
            assert_eq!(value_of(&bytes_of(&place)), Some(place));
        }
        for readers in [vec![], vec![1, 7, u32::MAX]] {
            let row = AudienceRow(readers.into_iter().map(UserNo).collect());
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
    }
}
