//! The records that readers pull, by one number that counts over all authors.

use feedgate_common::{DisplayKey, Op, OutboxSeq, PullSeq, UserNo};

use super::{AuthorFeed, fields, table};

table! {
    /// An author's records of route pull to one feed. Rows are never removed.
    Pulls: b'p', Archive, (AuthorFeed, PullSeq) => PullRow
}

table! {
    /// The number of each author's newest record of route pull. One row for each author who ever had such a record.
    /// Mirrors [`super::AuthorRow::last_pull`].
    PullHeads: b'q', Archive, PullSeq => UserNo
}

table! {
    /// The number of each author's newest record of route pull that was not imported, of which readers who are online
    /// are told. Mirrors [`super::AuthorRow::last_told`].
    ToldHeads: b't', Archive, PullSeq => UserNo
}

/// What is stored of a pull record besides its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullRow {
    pub(crate) op: Op,
    /// The sequence number of the record in the author's outbox.
    pub(crate) seq: OutboxSeq,
    pub(crate) key: DisplayKey,
}

fields!(PullRow { op, seq, key });
