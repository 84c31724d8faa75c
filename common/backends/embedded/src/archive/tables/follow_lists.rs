//! Follows in the order in which they began, whatever shields are up, and requests to follow: the lists that users see.

use feedgate_common::{Millis, UserNo};

use super::{fields, table};

table! {
    /// The authors whom a reader follows.
    FollowingList: b'g', Archive, (UserNo, u64) => FollowLine
}

table! {
    /// The readers who follow an author.
    FollowerList: b'h', Archive, (UserNo, u64) => FollowLine
}

table! {
    /// The readers who have asked to follow an author and have no answer yet.
    RequestList: b'~', Archive, (UserNo, u64) => FollowLine
}

/// The user on the other side of a follow, request or shield, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FollowLine {
    pub(crate) user: UserNo,
    pub(crate) since: Millis,
}

fields!(FollowLine { user, since });
