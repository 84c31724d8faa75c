//! What readers have seen of their feeds. Stores that were made before this table existed have no rows in it.

use feedgate_common::seen::Earlier;
use feedgate_common::{InboxKey, Position, Seen};

use super::table;
use crate::codec::Code;

table! {
    /// What each reader has seen of each feed.
    Sights: b'S', Archive, InboxKey => Seen
}

/// The bytes of a row: position, `until`, `earlier`.
impl Code for Seen {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { position: Position { epoch, offset }, until, earlier } = *self;
        ((epoch, offset, until), (earlier.until, earlier.upto)).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let ((epoch, offset, until), (earlier_until, upto)) = Code::take(from)?;
        let earlier = Earlier { until: earlier_until, upto };
        Some(Self { position: Position { epoch, offset }, until, earlier })
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::Epoch;

    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn what_is_seen_comes_back_as_it_was() {
        let position = Position { epoch: Epoch(7), offset: 1 << 40 };
        let seen = Seen { position, until: i64::MIN, earlier: Earlier { until: 12, upto: 3 } };
        assert_eq!(value_of(&bytes_of(&seen)), Some(seen));
    }
}
