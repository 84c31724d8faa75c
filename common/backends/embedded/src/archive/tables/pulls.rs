//! What readers pull, by its number: one count over all authors.

use feedgate_common::{DisplayKey, Op, OutboxSeq, PullSeq, UserNo};

use super::{AuthorFeed, fields, table};

table! {
    /// An author's records of route pull to one feed; never removed.
    Pulls: b'p', Archive, (AuthorFeed, PullSeq) => PullRow
}

table! {
    /// Where each author's end: one row per author who ever had any. Mirrors [`super::AuthorRow::last_pull`].
    PullHeads: b'q', Archive, PullSeq => UserNo
}

table! {
    /// The same of those that were not imported: whoever is online is told of them. Mirrors
    /// [`super::AuthorRow::last_told`].
    ToldHeads: b't', Archive, PullSeq => UserNo
}

/// A record, without what the key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullRow {
    pub(crate) op: Op,
    /// Its place in the outbox.
    pub(crate) seq: OutboxSeq,
    pub(crate) key: DisplayKey,
}

fields!(PullRow { op, seq, key });
