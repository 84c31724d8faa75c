//! Named feeds. A name keeps its number for ever; how many numbers are given is in [`super::Counters`].

use compact_str::CompactString;
use feedgate_common::FeedId;

use super::table;

table! {
    /// By name.
    Feeds: b'z', Archive, CompactString => FeedId
}
