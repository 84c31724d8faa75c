//! Announcements of accepted writes for other programs. Stores that were made before these tables existed have no such
//! rows.

use compact_str::CompactString;
use feedgate_common::{ItemId, Millis, UserNo};

use super::{fields, table};

table! {
    /// The announcements that are kept, by number. The numbers are dense.
    Announcements: b'3', Archive, u64 => AnnouncementRow
}

table! {
    /// The last number that was given to an announcement.
    LastAnnounced: b'4', Archive, () => u64
}

/// What is kept of one announcement. `act` is the number of the act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnnouncementRow {
    pub(crate) at: Millis,
    pub(crate) act: u8,
    pub(crate) user: UserNo,
    pub(crate) other: Option<UserNo>,
    pub(crate) item: Option<ItemId>,
    pub(crate) version: Option<u32>,
    pub(crate) detail: Option<CompactString>,
}

fields!(AnnouncementRow { at, act, user, other, item, version, detail });
