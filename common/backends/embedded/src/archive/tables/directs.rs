//! Records addressed to readers by name. They stand in no outbox.

use feedgate_common::{DirectSeq, DisplayKey, FeedId, InboxKey, ItemId, Millis, Op, UserNo};

use super::{fields, table};

/// A number that is never given to a user.
pub(crate) const NOBODY: UserNo = UserNo(u32::MAX);

table! {
    /// A reader's records, dense from 1. Only an erasure of the reader, and rankings, remove records; removed numbers
    /// are not given again.
    Directs: b'm', Archive, (UserNo, DirectSeq) => DirectRow
}

table! {
    /// Where the records addressed to a reader end.
    DirectHeads: b'j', Archive, UserNo => DirectHeadRow
}

table! {
    /// The living items of a reader's feed in display order, each with its author: those that are addressed to the
    /// reader by themselves, and those of a ranking.
    DirectShown: b'l', Archive, (InboxKey, DisplayKey) => UserNo
}

table! {
    /// The readers to whom an item is addressed, with its author. The rows stay when the item is deleted. An item that
    /// reached nobody has one row at [`NOBODY`].
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

/// The end of the records addressed to a reader. All fields are zero if nothing was ever addressed to the reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DirectHeadRow {
    /// The number of the newest record.
    pub(crate) head: DirectSeq,
    /// When the oldest record that is not brought into the inboxes was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// Whether all records that are not brought were imported: then nobody is told of them.
    pub(crate) quiet: bool,
}

fields!(DirectHeadRow { head, due, quiet });
