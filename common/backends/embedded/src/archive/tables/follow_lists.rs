//! Edges that are on, in the order in which they were set on: the lists people see.

use feedgate_common::{Generation, Millis, UserNo};

use super::{fields, table};

table! {
    /// Whom a reader follows.
    FollowingList: b'g', Archive, (UserNo, Generation) => FollowLine
}

table! {
    /// Who follows an author.
    FollowerList: b'h', Archive, (UserNo, Generation) => FollowLine
}

/// The other side of the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FollowLine {
    pub(crate) user: UserNo,
    pub(crate) since: Millis,
}

fields!(FollowLine { user, since });
