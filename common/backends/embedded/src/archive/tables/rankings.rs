//! Rankings of readers. The items of a ranking are in `directs` and `direct_shown` too, like direct items. Stores that
//! were made before these tables existed have no rows in them.

use feedgate_common::{DirectSeq, InboxKey, ItemId};

use super::{fields, table};

table! {
    /// The rankings in which each item stands.
    RankedIn: b'+', Archive, (ItemId, InboxKey) => RankedRow
}

table! {
    /// The records of a ranking that are of no use once all inboxes have taken them in: all but the adds of the items
    /// that stand in the ranking.
    RankedOver: b'%', Archive, (InboxKey, DirectSeq) => ()
}

table! {
    /// The items that were edited or deleted, as long as a ranking may not show the change yet; and the ranking behind
    /// which the work goes on.
    RankingDue: b'=', Archive, ItemId => InboxKey
}

/// The place of an item in one ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedRow {
    pub(crate) rank: i64,
    /// The number of the item's add among the records addressed to the reader.
    pub(crate) seq: DirectSeq,
}

fields!(RankedRow { rank, seq });
