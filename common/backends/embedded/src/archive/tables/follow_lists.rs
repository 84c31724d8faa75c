//! Follows in the order in which they began, whatever shields are up: the lists people see.

use feedgate_common::{Millis, UserNo};

use super::{fields, table};

table! {
    /// Whom a reader follows.
    FollowingList: b'g', Archive, (UserNo, u64) => FollowLine
}

table! {
    /// Who follows an author.
    FollowerList: b'h', Archive, (UserNo, u64) => FollowLine
}

/// The other side, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FollowLine {
    pub(crate) user: UserNo,
    pub(crate) since: Millis,
}

fields!(FollowLine { user, since });
