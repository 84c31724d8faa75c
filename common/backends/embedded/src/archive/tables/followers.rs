//! Edges in effect that have a row, by author and bucket: what a push step reads as one range.

use feedgate_common::{Bucket, Generation, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// By author, bucket of the store's layout, then reader.
    Followers: b'w', Archive, (UserNo, Bucket, UserNo) => FollowerRow
}

/// The edge, without what the key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FollowerRow {
    pub(crate) generation: Generation,
    pub(crate) from: OutboxSeq,
}

fields!(FollowerRow { generation, from });
