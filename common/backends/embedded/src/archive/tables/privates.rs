//! Which authors are private. Stores that were made before this table existed have no rows in it.

use feedgate_common::UserNo;

use super::table;

table! {
    /// A row for each author who is private.
    Privates: b'^', Archive, UserNo => ()
}
