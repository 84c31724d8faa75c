//! The shields that users have put up against others, as the lists of these users show them. The rows of edges hold
//! shields too.

use feedgate_common::UserNo;
use feedgate_common::graph::Shield;

use super::{FollowLine, table};

table! {
    /// By the user who asked, the kind and the user on the other side: the place in the list.
    ShieldsUp: b'b', Archive, (UserNo, Shield, UserNo) => u64
}

table! {
    /// Shields in the order in which they went up.
    ShieldList: b'c', Archive, (UserNo, Shield, u64) => FollowLine
}
