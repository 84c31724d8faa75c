//! One feed of an author's outbox, as the start of a key: what walks through one feed meets no other, however much it holds.
//!
//! ```text
//!   FeedId::MAIN    author                        as all keys were before feeds had names
//!   a named feed    NOBODY, feed, author          behind all of the main feed, each feed by itself
//! ```
//!
//! Invariant: bytes sort as values do, and none are the start of another's. So no user may have the number [`NOBODY`].

use feedgate_common::{FeedId, UserNo};

use crate::codec::Code;

/// The number that is never given to a user.
pub(crate) const NOBODY: UserNo = UserNo(u32::MAX);

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AuthorFeed {
    pub(crate) feed: FeedId,
    pub(crate) author: UserNo,
}

impl Code for AuthorFeed {
    fn put(&self, out: &mut Vec<u8>) {
        if self.feed != FeedId::MAIN {
            (NOBODY, self.feed).put(out);
        }
        self.author.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let first = UserNo::take(from)?;
        if first != NOBODY {
            return Some(Self { feed: FeedId::MAIN, author: first });
        }
        let (feed, author) = Code::take(from)?;
        (feed != FeedId::MAIN).then_some(Self { feed, author })
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::{DisplayKey, ItemId};
    use proptest::prelude::*;

    use super::*;
    use crate::archive::tables::{Adds, Lane, Shown};
    use crate::codec::{bytes_of, value_of};
    use crate::table::{Table, key_bytes, range_bytes};

    /// Often few, so that pairs meet; often at an end.
    fn author_feed() -> impl Strategy<Value = AuthorFeed> {
        let author = prop_oneof![0u32..4, NOBODY.0 - 3..NOBODY.0, 0..NOBODY.0];
        let feed = prop_oneof![3 => 0u16..3, 1 => u16::MAX - 1..=u16::MAX, 1 => any::<u16>()];
        (author, feed).prop_map(|(author, feed)| AuthorFeed { author: UserNo(author), feed: FeedId(feed) })
    }

    /// Whether the bytes of a key lie in those of a range.
    fn holds<T: Table>(range: std::ops::RangeInclusive<T::Key>, key: &T::Key) -> bool {
        std::ops::RangeBounds::contains(&range_bytes::<T>(range), &key_bytes::<T>(key))
    }

    proptest! {
        #[test]
        fn keys_of_feeds_come_back_and_sort_as_they_do_and_none_begins_another(
            a in author_feed(), b in author_feed(), (x, y) in (0u64..3, 0u64..3),
        ) {
            prop_assert_eq!(value_of(&bytes_of(&a)), Some(a));
            prop_assert_eq!((a, x).cmp(&(b, y)), bytes_of(&(a, x)).cmp(&bytes_of(&(b, y))));
            prop_assert!(a == b || !bytes_of(&a).starts_with(&bytes_of(&b)));
        }

        #[test]
        fn a_walk_through_one_feed_of_an_author_meets_no_other(
            a in author_feed(), b in author_feed(), seq: u64, rank: i64, item: u64,
        ) {
            prop_assert_eq!(holds::<Adds>((a, 0)..=(a, u64::MAX), &(b, seq)), a == b);
            let at = |feed, rank, item| (feed, Lane::InStep, DisplayKey { rank, item: ItemId(item) });
            prop_assert_eq!(
                holds::<Shown>(at(a, i64::MIN, 0)..=at(a, i64::MAX, u64::MAX), &at(b, rank, item)),
                a == b
            );
        }

        #[test]
        fn the_main_feed_has_the_keys_that_authors_had_before(author in 0..NOBODY.0, seq: u64) {
            let main = AuthorFeed { author: UserNo(author), feed: FeedId::MAIN };
            prop_assert_eq!(bytes_of(&(main, seq)), bytes_of(&(UserNo(author), seq)));
        }
    }

    #[test]
    fn what_no_key_was_written_as_is_no_key() {
        assert_eq!(value_of::<AuthorFeed>(&bytes_of(&NOBODY)), None, "nobody is not an author");
        assert_eq!(
            value_of::<AuthorFeed>(&bytes_of(&(NOBODY, FeedId::MAIN, UserNo(1)))),
            None,
            "there is one way only"
        );
    }
}
