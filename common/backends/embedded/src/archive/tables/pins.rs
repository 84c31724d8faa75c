//! What users have pinned to their profiles. Stores that were made before this table existed have no rows in it.

use feedgate_common::pins::Pin;
use feedgate_common::{FeedId, ItemId, UserNo};

use super::table;
use crate::codec::Code;

table! {
    /// The pinned items of each user, the last first. Items that were deleted since may be among them.
    Pins: b'|', Archive, UserNo => PinsRow
}

/// The pinned items of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PinsRow(pub(crate) Vec<Pin>);

impl Code for PinsRow {
    fn put(&self, out: &mut Vec<u8>) {
        for pin in &self.0 {
            pin.feed.put(out);
            pin.item.put(out);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut pins = vec![];
        while !from.is_empty() {
            pins.push(Pin { feed: FeedId::take(from)?, item: ItemId::take(from)? });
        }
        Some(Self(pins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn s13_pins_come_back_as_they_were() {
        for pins in [vec![], vec![(0, 7)], vec![(1, u64::MAX), (u16::MAX, 0)]] {
            let row =
                PinsRow(pins.into_iter().map(|(feed, item)| Pin { feed: FeedId(feed), item: ItemId(item) }).collect());
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
    }
}
