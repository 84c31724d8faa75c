//! One feed of an author's outbox, as the start of a key: a walk through one feed meets no row of another.

use feedgate_common::{FeedId, UserNo};

use super::fields;

/// A feed of an author. Keys sort by feed, then by author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AuthorFeed {
    pub(crate) feed: FeedId,
    pub(crate) author: UserNo,
}

fields!(AuthorFeed { feed, author });

#[cfg(test)]
mod tests {
    use feedgate_common::{DisplayKey, ItemId};
    use proptest::prelude::*;

    use super::*;
    use crate::archive::tables::{Adds, Shown, Track};
    use crate::codec::{bytes_of, value_of};
    use crate::table::{Table, key_bytes, range_bytes};

    /// Often few, so that pairs meet; often at an end.
    fn author_feed() -> impl Strategy<Value = AuthorFeed> {
        let author = prop_oneof![0u32..4, u32::MAX - 3..=u32::MAX, any::<u32>()];
        let feed = prop_oneof![3 => 0u16..3, 1 => u16::MAX - 1..=u16::MAX, 1 => any::<u16>()];
        (author, feed).prop_map(|(author, feed)| AuthorFeed { author: UserNo(author), feed: FeedId(feed) })
    }

    /// Whether the bytes of a key lie in those of a range.
    fn holds<T: Table>(range: std::ops::RangeInclusive<T::Key>, key: &T::Key) -> bool {
        std::ops::RangeBounds::contains(&range_bytes::<T>(range), &key_bytes::<T>(key))
    }

    proptest! {
        #[test]
        fn keys_of_feeds_come_back_and_sort_as_they_do(
            a in author_feed(), b in author_feed(), (x, y) in (0u64..3, 0u64..3),
        ) {
            prop_assert_eq!(value_of(&bytes_of(&a)), Some(a));
            prop_assert_eq!((a, x).cmp(&(b, y)), bytes_of(&(a, x)).cmp(&bytes_of(&(b, y))));
        }

        #[test]
        fn a_walk_through_one_feed_of_an_author_meets_no_other(
            a in author_feed(), b in author_feed(), seq: u64, rank: i64, item: u64,
        ) {
            prop_assert_eq!(holds::<Adds>((a, 0)..=(a, u64::MAX), &(b, seq)), a == b);
            let at = |feed, rank, item| (feed, Track::InStep, DisplayKey { rank, item: ItemId(item) });
            prop_assert_eq!(
                holds::<Shown>(at(a, i64::MIN, 0)..=at(a, i64::MAX, u64::MAX), &at(b, rank, item)),
                a == b
            );
        }
    }
}
