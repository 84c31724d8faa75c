//! Names and numbers of users, each way. A pair never changes.

use compact_str::CompactString;
use feedgate_common::UserNo;

use super::table;

table! {
    /// From outside to inside.
    Names: b'n', Archive, CompactString => UserNo
}

table! {
    /// From inside to outside.
    Users: b'u', Archive, UserNo => CompactString
}
