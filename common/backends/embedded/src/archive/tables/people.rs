//! What backends say of users. Stores that were made before this table existed have no rows in it.

use compact_str::CompactString;
use feedgate_common::UserNo;

use super::{fields, table};
use crate::codec::Short;

table! {
    /// The name, avatar and attributes of each user, if a backend has said any.
    People: b'P', Archive, UserNo => PersonRow
}

/// What is stored of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersonRow {
    pub(crate) name: Option<Short>,
    pub(crate) avatar: Option<Short>,
    /// The attributes, as the JSON text that the backend sent.
    pub(crate) attrs: Option<CompactString>,
}

fields!(PersonRow { name, avatar, attrs });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn s7_a_person_comes_back_as_it_was() {
        let short = |text: &str| Some(Short(text.into()));
        let long = "x".repeat(2048);
        for row in [
            PersonRow { name: None, avatar: None, attrs: None },
            PersonRow { name: short("王小明"), avatar: short(&long), attrs: Some("{}".into()) },
            PersonRow { name: None, avatar: short("/a"), attrs: None },
        ] {
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
    }
}
