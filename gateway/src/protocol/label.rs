//! How a push says to which channel it belongs: by the name of the channel, or by a number that takes fewer bytes.
//!
//! A device offers numbers with bit 1 of a subscribe's `flag`. The reply then has the number as `id`, and each push of
//! that subscription has `id` in place of `channel`. The number is computed from the number of the feed, so nothing is
//! stored for it.
//!
//! Over Protobuf only clients that are known to find a channel by its number get a number. The SDK of JavaScript
//! (5.8.0) offers numbers, but reads them as objects over Protobuf, compares these by identity, and so drops every
//! push.

use std::num::NonZeroU32;

use feedgate_common::FeedId;

/// How the pushes of one subscription name their channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label<'a> {
    /// The name of the feed; nothing in it needs an escape in JSON.
    pub(crate) name: &'a str,
    /// The number that stands in place of the name, if the device has offered that.
    pub(crate) number: Option<NonZeroU32>,
}

impl<'a> Label<'a> {
    /// The label of the feed that is called `name`; by its number if `numbered`.
    pub(crate) fn of(feed: FeedId, name: &'a str, numbered: bool) -> Self {
        Self { name, number: numbered.then(|| number(feed)) }
    }
}

/// The number of a channel on the wire, the same on every connection and node. It is never zero, which would mean no
/// number.
pub(crate) fn number(feed: FeedId) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(feed.0.into())
}

/// Whether a client with this name finds a channel by its number in Protobuf. The name is that of the SDK, unless the
/// app chooses another.
pub(super) fn reads_numbers(name: &str) -> bool {
    matches!(name, "python" | "rust" | "swift")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sdks_that_find_a_channel_by_its_number_in_protobuf_get_it_there() {
        assert!(["python", "rust", "swift"].into_iter().all(reads_numbers));
        assert!(!["js", "java", "go", "dart", "", "Python"].into_iter().any(reads_numbers));
    }

    #[test]
    fn each_feed_has_a_number_of_its_own_and_none_has_zero() {
        assert_eq!([0, 1, 2, u16::MAX].map(|feed| number(FeedId(feed)).get()), [1, 2, 3, 65_536]);
    }
}
