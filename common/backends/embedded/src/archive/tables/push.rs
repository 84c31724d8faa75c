//! Devices that push services reach, and the notices for these devices. Stores that were made before these tables
//! existed have no such rows.

use compact_str::CompactString;
use feedgate_common::notices::NoticeRow;
use feedgate_common::{DirectSeq, FeedId, InboxKey, Millis, UserNo};

use super::{fields, table};
use crate::codec::{Code, Short};

table! {
    /// The devices of each user, by device.
    PushDevices: b'G', Archive, (UserNo, CompactString) => PushDeviceRow
}

table! {
    /// The users who have a device that a push service reaches, each with the number up to which records addressed to
    /// the user were noted.
    PushReaders: b'H', Archive, UserNo => DirectSeq
}

table! {
    /// The notice of each reader and feed: what is still to be told, or was told a moment ago.
    PushNotices: b'J', Archive, InboxKey => NoticeRow
}

table! {
    /// The rows of `PushNotices` by the time when each is due.
    PushDue: b'K', Archive, (Millis, InboxKey) => ()
}

table! {
    /// A notice that nobody took.
    PushDead: b'L', Archive, InboxKey => PushDeadRow
}

table! {
    /// The last number that was given to a notice.
    PushNumber: b'Z', Archive, () => u64
}

/// A device that a push service reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushDeviceRow {
    pub(crate) since: Millis,
    pub(crate) platform: Short,
    pub(crate) feeds: FeedList,
    pub(crate) token: CompactString,
}

fields!(PushDeviceRow { since, platform, feeds, token });

fields!(NoticeRow { item, count, number, tries, due, sent });

/// A notice that nobody took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushDeadRow {
    pub(crate) notice: NoticeRow,
    pub(crate) at: Millis,
    pub(crate) why: CompactString,
}

fields!(PushDeadRow { notice, at, why });

/// A list of feeds; in its bytes, how many there are comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedList(pub(crate) Vec<FeedId>);

impl Code for FeedList {
    fn put(&self, out: &mut Vec<u8>) {
        let many = u16::try_from(self.0.len()).expect("there are fewer feeds than numbers of feeds");
        many.put(out);
        self.0.iter().for_each(|feed| feed.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let many = u16::take(from)?;
        (0..many).map(|_| FeedId::take(from)).collect::<Option<_>>().map(Self)
    }
}
