//! Rankings of readers. What stands in one is in `directs` and `direct_shown` too, as what is addressed to the reader.
//! Stores that were made before these tables existed have no rows in them.

use feedgate_common::{DirectSeq, InboxKey, ItemId};

use super::{fields, table};

table! {
    /// In which rankings an item stands.
    RankedIn: b'+', Archive, (ItemId, InboxKey) => RankedRow
}

table! {
    /// The records of a ranking that are of no use once all inboxes have them: all but the adds of what stands in it.
    RankedOver: b'%', Archive, (InboxKey, DirectSeq) => ()
}

table! {
    /// The items that were edited or deleted, as long as a ranking may not have heard of it; and behind which ranking
    /// to go on.
    RankingDue: b'=', Archive, ItemId => InboxKey
}

/// The place of an item in one ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedRow {
    pub(crate) rank: i64,
    /// The number of its add among the records addressed to the reader.
    pub(crate) seq: DirectSeq,
}

fields!(RankedRow { rank, seq });
