//! For whom an item is, and to whom the feeds bring it: by a follow, by its audience, or by name.

use crate::Item;

/// For whom an item is, and whether a user is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// For all who follow its author.
    Followers,
    /// For the followers who are in the item's audience; says whether the user is in the audience.
    Narrowed(bool),
    /// For named readers; says whether the user is one of them.
    Named(bool),
}

impl Reach {
    /// The reach of an item. `has` says whether the user is among the item's readers, and counts only if the item is
    /// not for all followers.
    pub fn of(item: &Item, has: bool) -> Self {
        match (item.direct, item.narrowed) {
            (true, _) => Self::Named(has),
            (false, true) => Self::Narrowed(has),
            (false, false) => Self::Followers,
        }
    }
}

/// Whether an item that lives comes to a reader by a follow, by its audience or by name. `own` says that the reader is
/// its author, and `follows` that the reader's edge to the author is in effect.
pub fn sees(own: bool, follows: bool, reach: Reach) -> bool {
    own || match reach {
        Reach::Followers => follows,
        Reach::Narrowed(has) => has && follows,
        Reach::Named(has) => has,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follow_shows_no_item_for_named_readers_and_ones_own_is_always_seen() {
        for reach in [Reach::Followers, Reach::Narrowed(false), Reach::Named(false)] {
            assert!(sees(true, false, reach), "{reach:?}");
        }
        assert!(sees(false, true, Reach::Followers) && !sees(false, false, Reach::Followers));
        assert!(sees(false, false, Reach::Named(true)) && !sees(false, true, Reach::Named(false)));
    }

    #[test]
    fn s9_a_narrowed_item_is_seen_by_a_follower_in_its_audience_alone() {
        assert!(sees(false, true, Reach::Narrowed(true)));
        assert!(!sees(false, true, Reach::Narrowed(false)) && !sees(false, false, Reach::Narrowed(true)));
    }
}
