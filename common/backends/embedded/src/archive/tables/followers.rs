//! The edges that are on and have a row, by author and bucket. A push step reads one range of this table.

use feedgate_common::{Bucket, Generation, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// The followers, by author, bucket of the store's layout, and reader.
    Followers: b'w', Archive, (UserNo, Bucket, UserNo) => FollowerRow
}

/// What a push step needs of an edge besides its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FollowerRow {
    pub(crate) generation: Generation,
    pub(crate) from: OutboxSeq,
}

fields!(FollowerRow { generation, from });
