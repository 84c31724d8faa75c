//! The names and numbers of users, by name and by number. The number of a name never changes.

use compact_str::CompactString;
use feedgate_common::UserNo;

use super::table;

table! {
    /// The number of each name.
    Names: b'n', Archive, CompactString => UserNo
}

table! {
    /// The name of each number.
    Users: b'u', Archive, UserNo => CompactString
}
