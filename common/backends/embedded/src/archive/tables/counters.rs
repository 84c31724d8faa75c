//! Every counter of the store in one row, which each operation reads and writes once.

use super::{fields, table};

table! {
    /// The one row of counters.
    Counters: b'0', Archive, () => CountersRow
}

/// The counters. Each is the last number given, or a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CountersRow {
    pub(crate) users: u32,
    /// The last edge generation given, over all readers. Follows and shields take their places in lists from it too.
    pub(crate) generation: u64,
    /// The end of the last block of epochs that was given out.
    pub(crate) epoch: u64,
    /// The last item id that the store chose itself.
    pub(crate) item: u64,
    pub(crate) living_items: u64,
    pub(crate) edges_on: u64,
    pub(crate) events: u64,
    /// The last number given to a record of route pull, over all authors.
    pub(crate) pull: u64,
    /// How many named feeds there are.
    pub(crate) feeds: u16,
}

fields!(CountersRow { users, generation, epoch, item, living_items, edges_on, events, pull, feeds });
