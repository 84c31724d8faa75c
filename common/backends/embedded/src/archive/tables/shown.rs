//! An author's living adds to one feed in display order, on two tracks.
//!
//! ```text
//!   in step   each newer in both orders than the one before: outbox order *is* display order
//!   aside     the others: backdated, or with a rank of the backend's own
//! ```
//!
//! A reader who followed late is shown no add below some outbox sequence number. On the track in step, the first add
//! below that number ends the search; without tracks the search would go on through all adds of the author. An author
//! has one pair of tracks for all feeds: adds that are in step among all are in step among those of one feed.

use feedgate_common::{DisplayKey, OutboxSeq};

use super::{AuthorFeed, table};
use crate::codec::Code;

table! {
    /// The living adds in display order, by author, feed and track.
    Shown: b's', Archive, (AuthorFeed, Track, DisplayKey) => ShownRow
}

/// The place of an add in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownRow {
    pub(crate) seq: OutboxSeq,
    /// Whether the item is for its audience alone.
    pub(crate) narrowed: bool,
}

/// What a row of a narrowed add ends with. Stores from before there were audiences have no such row.
const NARROWED: u8 = 1;

impl Code for ShownRow {
    fn put(&self, out: &mut Vec<u8>) {
        self.seq.put(out);
        if self.narrowed {
            out.push(NARROWED);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let seq = Code::take(from)?;
        let narrowed = match from {
            [] => false,
            [NARROWED, ..] => u8::take(from).is_some(),
            _ => return None,
        };
        Some(Self { seq, narrowed })
    }
}

/// The track of an add. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Track {
    InStep = 0,
    Aside = 1,
}

impl Code for Track {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Self::InStep),
            1 => Some(Self::Aside),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn s9_a_narrowed_add_comes_back_as_one_and_an_older_row_as_none() {
        for narrowed in [false, true] {
            let row = ShownRow { seq: 7, narrowed };
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
        assert_eq!(value_of(&bytes_of(&7u64)), Some(ShownRow { seq: 7, narrowed: false }));
    }
}
