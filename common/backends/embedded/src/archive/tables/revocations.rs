//! Which tokens of users are refused. Stores that were made before these tables existed have no rows in them.

use feedgate_common::{Millis, UserNo};

use super::{fields, table};

table! {
    /// What is revoked of each user who ever had tokens revoked.
    Revoked: b'T', Archive, UserNo => RevokedRow
}

table! {
    /// The users with a revocation, by the number of the newest one of each. The last line is never removed without a
    /// later one.
    RevocationList: b'R', Archive, u64 => UserNo
}

/// What is stored of a user's newest revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RevokedRow {
    /// The number of the revocation in the list.
    pub(crate) number: u64,
    /// Tokens that were issued before this time, in Unix ms, are refused.
    pub(crate) before: Millis,
}

fields!(RevokedRow { number, before });
