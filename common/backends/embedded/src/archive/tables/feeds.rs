//! The named feeds. A name keeps its number for ever; [`super::Counters`] holds how many numbers are given.

use compact_str::CompactString;
use feedgate_common::FeedId;

use super::table;

table! {
    /// The number of each named feed.
    Feeds: b'z', Archive, CompactString => FeedId
}
