//! What readers pull, by its number: one count over all authors.

use feedgate_common::{DisplayKey, FeedId, Op, OutboxSeq, PullSeq, UserNo};

use super::{fields, table};

table! {
    /// An author's records of route pull; never removed.
    Pulls: b'p', Archive, (UserNo, PullSeq) => PullRow
}

table! {
    /// Where each author's end: one row per author who ever had any. Mirrors [`super::AuthorRow::last_pull`].
    PullHeads: b'q', Archive, PullSeq => UserNo
}

/// A record, without what the key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullRow {
    pub(crate) op: Op,
    /// Its place in the outbox.
    pub(crate) seq: OutboxSeq,
    pub(crate) key: DisplayKey,
    pub(crate) feed: FeedId,
}

fields!(PullRow { op, seq, key, feed });
