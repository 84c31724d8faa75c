//! The living reposts of items. A store that was made before these tables existed is walked through once, when it is
//! opened.

use feedgate_common::ItemId;

use super::table;

table! {
    /// The living reposts of an item by id, whether the item itself lives or not.
    Reposts: b'(', Archive, (ItemId, ItemId) => ()
}

table! {
    /// How many living reposts each item has; no row if it has none.
    RepostCounts: b')', Archive, ItemId => u64
}

table! {
    /// Says that the two tables hold all reposts of the store.
    RepostsKnown: b'*', Archive, () => ()
}
