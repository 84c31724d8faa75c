//! Pins: the items that an author shows before all others on the profile, the one that was pinned last first.
//!
//! ```text
//!   pinned so far, without what was deleted ─┐
//!   an item of the author's outbox ──────────┴─▶ pin ──▶ the item, then those   at most PINS_MAX, or refused
//! ```

use std::fmt;

use crate::{FeedId, ItemId, UserNo};

/// The most items that a user has pinned at a time, over all feeds.
pub const PINS_MAX: usize = 5;

/// An item that a user has pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// The feed of the item: on the profile of that feed it stands first.
    pub feed: FeedId,
    /// The item, which may have been deleted since.
    pub item: ItemId,
}

/// What counts of an item that lives and is to be pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinnable {
    /// The author of the item.
    pub author: UserNo,
    /// The feed to which it went.
    pub feed: FeedId,
    /// Whether it is addressed to named readers. Then it stands in no outbox.
    pub direct: bool,
}

/// An item was not pinned, and nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPinned {
    /// The item does not live.
    NoSuchItem,
    /// The item is of another author.
    OfAnother,
    /// The item is for named readers, so it is on no profile.
    Direct,
    /// The user has pinned as many other items as are allowed.
    TooMany,
}

impl fmt::Display for NotPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchItem => f.write_str("there is no such item"),
            Self::OfAnother => f.write_str("it is of another author; a user pins items of his or her own"),
            Self::Direct => f.write_str("it is for named readers and stands on no profile; pin one for followers"),
            Self::TooMany => write!(f, "{PINS_MAX} other items are pinned, which is the most; unpin one of them first"),
        }
    }
}

/// The pins of `user` once `item` is pinned too; `None` if it is pinned already. `found` is the item, if it lives, and
/// `pins` are those of before that live.
///
/// # Errors
/// If the item may not be pinned: why not.
pub fn pin(user: UserNo, item: ItemId, found: Option<Pinnable>, pins: &[Pin]) -> Result<Option<Vec<Pin>>, NotPinned> {
    let Pinnable { author, feed, direct } = found.ok_or(NotPinned::NoSuchItem)?;
    if author != user {
        return Err(NotPinned::OfAnother);
    }
    if direct {
        return Err(NotPinned::Direct);
    }
    if pins.iter().any(|pin| pin.item == item) {
        return Ok(None);
    }
    if pins.len() >= PINS_MAX {
        return Err(NotPinned::TooMany);
    }
    let first = Pin { feed, item };
    Ok(Some([&[first], pins].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: UserNo = UserNo(1);
    const OF_ANN: Pinnable = Pinnable { author: ANN, feed: FeedId::MAIN, direct: false };

    fn pins(ids: &[u64]) -> Vec<Pin> {
        ids.iter().map(|id| Pin { feed: FeedId::MAIN, item: ItemId(*id) }).collect()
    }

    #[test]
    fn s13_what_is_pinned_last_stands_first_and_only_once() {
        assert_eq!(pin(ANN, ItemId(7), Some(OF_ANN), &pins(&[5, 3])), Ok(Some(pins(&[7, 5, 3]))));
        assert_eq!(pin(ANN, ItemId(3), Some(OF_ANN), &pins(&[5, 3])), Ok(None));
        let likes = Pinnable { feed: FeedId(1), ..OF_ANN };
        let of_likes = Pin { feed: FeedId(1), item: ItemId(7) };
        assert_eq!(pin(ANN, ItemId(7), Some(likes), &[]), Ok(Some(vec![of_likes])));
    }

    #[test]
    fn s13_a_user_pins_a_few_items_of_the_own_outbox() {
        let full = pins(&[1, 2, 3, 4, 5]);
        assert_eq!(full.len(), PINS_MAX);
        assert_eq!(pin(ANN, ItemId(7), Some(OF_ANN), &full), Err(NotPinned::TooMany));
        assert_eq!(pin(ANN, ItemId(5), Some(OF_ANN), &full), Ok(None), "what is pinned may be pinned again");
        assert_eq!(pin(ANN, ItemId(7), None, &[]), Err(NotPinned::NoSuchItem));
        let others = Pinnable { author: UserNo(2), ..OF_ANN };
        assert_eq!(pin(ANN, ItemId(7), Some(others), &[]), Err(NotPinned::OfAnother));
        let letter = Pinnable { direct: true, ..OF_ANN };
        assert_eq!(pin(ANN, ItemId(7), Some(letter), &[]), Err(NotPinned::Direct));
    }
}
