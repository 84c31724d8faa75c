//! What is addressed to readers by name: it stands in no outbox.

use feedgate_common::{DirectSeq, DisplayKey, FeedId, InboxKey, ItemId, Millis, Op, UserNo};

use super::{fields, table};

/// The number that is never given to a user.
pub(crate) const NOBODY: UserNo = UserNo(u32::MAX);

table! {
    /// A reader's records, dense from 1; never removed.
    Directs: b'm', Archive, (UserNo, DirectSeq) => DirectRow
}

table! {
    /// Where a reader's records end.
    DirectHeads: b'j', Archive, UserNo => DirectHeadRow
}

table! {
    /// The living items of a reader's feed in display order, each with its author.
    DirectShown: b'l', Archive, (InboxKey, DisplayKey) => UserNo
}

table! {
    /// Who was given an item, with its author; kept when it is deleted. One that reached nobody stands at [`NOBODY`].
    Recipients: b'o', Archive, (ItemId, UserNo) => UserNo
}

/// One record, and when it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectRow {
    pub(crate) op: Op,
    pub(crate) author: UserNo,
    pub(crate) feed: FeedId,
    pub(crate) key: DisplayKey,
    pub(crate) at: Millis,
}

fields!(DirectRow { op, author, feed, key, at });

/// Zero for a reader to whom nothing was ever addressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DirectHeadRow {
    /// The last number given.
    pub(crate) head: DirectSeq,
    /// When the oldest record that is not brought was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// All records that are not brought were imported: nobody is told of them.
    pub(crate) quiet: bool,
}

fields!(DirectHeadRow { head, due, quiet });
