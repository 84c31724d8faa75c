//! An author's living adds to one feed in display order, on two tracks.
//!
//! ```text
//!   in step   each newer in both orders than the one before: outbox order *is* display order
//!   aside     the others: backdated, or with a rank of the business's own
//! ```
//!
//! A reader who followed late is shown no add below some outbox sequence number. On the track in step, the first such
//! add ends the search; without tracks it would go on through all of the author's adds. An author has one pair of tracks
//! for all feeds: adds that are in step among all are in step among those of one feed.

use feedgate_common::{DisplayKey, OutboxSeq};

use super::{AuthorFeed, table};
use crate::codec::Code;

table! {
    /// The living adds in display order, by author, feed and track: the place of each in the outbox.
    Shown: b's', Archive, (AuthorFeed, Track, DisplayKey) => OutboxSeq
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
