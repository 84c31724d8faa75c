//! Originals: what a repost shows of the item that it reposts, as the viewer may see that now.
//!
//! ```text
//!   repost ── ref ──▶ item that lives, and that the viewer may see ──▶ Shown
//!                     deleted, unknown, behind a shield, addressed to others ──▶ Gone, without a word why
//! ```
//!
//! A repost names exactly the item that it was published with, which may be a repost itself. One level is shown: the
//! original of an original is not read.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::reach::{Reach, sees};
use crate::archive::Items;
use crate::error::Result;
use crate::graph::Shields;
use crate::{Item, ItemId, UserNo};

/// The viewer for whom items are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// A backend that names no user. It sees everything that lives.
    Backend,
    /// A user; `None` for a user who was never named, to whom nothing is addressed and against whom no shield is up.
    User(Option<UserNo>),
}

impl Viewer {
    /// The number of the user; `None` if there is none.
    pub fn user(self) -> Option<UserNo> {
        match self {
            Self::Backend => None,
            Self::User(user) => user,
        }
    }
}

/// What a repost shows of the item that it reposts.
#[derive(Debug, Clone, PartialEq)]
pub enum Original {
    /// The item as it is now.
    Shown(Arc<Item>),
    /// The item is deleted or unknown, or the viewer may not see it.
    Gone,
}

/// The terms between a user and the author of an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Whether the user's edge to the author is in effect.
    pub follows: bool,
    /// The shields on that edge.
    pub shields: Shields,
    /// Whether the author is private.
    pub private: bool,
}

/// Whether a user may see an item that lives as the original of a repost. `own` says that the user is its author.
///
/// The user need not follow the author of an item for the followers, unless the author is private: to bring it before
/// other readers is what a repost is for. A shield of either side hides the item. An item that is addressed to the user
/// is shown unless a block is up, as it also arrives unless a block is up. A narrowed item is shown to no more users
/// than it has readers.
pub fn shows_original(own: bool, terms: Terms, reach: Reach) -> bool {
    let Terms { follows, shields, private } = terms;
    match reach {
        Reach::Followers => own || (shields == Shields(0) && (follows || !private)),
        Reach::Named(has) => own || (has && !shields.blocks()),
        Reach::Narrowed(_) => sees(own, follows, reach),
    }
}

/// The originals of those `items` that are reposts, by their id: one read of the store, and none if there is no repost.
/// Fails if the store does.
pub async fn originals_of(
    archive: &(impl Items + ?Sized),
    items: &[Arc<Item>],
    viewer: Viewer,
) -> Result<HashMap<ItemId, Original>> {
    let ids: BTreeSet<ItemId> = items.iter().filter_map(|item| item.repost_of).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = Vec::from_iter(ids);
    let found = archive.originals(&ids, viewer).await?;
    Ok(ids.into_iter().zip(found.into_iter().map(|item| item.map_or(Original::Gone, Original::Shown))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_any_shield_hides_an_original_for_the_followers() {
        let for_all = |own, shields| shows_original(own, Terms { shields, ..Terms::default() }, Reach::Followers);
        assert!(for_all(false, Shields(0)), "nobody has to follow its author");
        for shield in [Shields::MUTED, Shields::HIDDEN, Shields::BLOCKED_BY_READER, Shields::BLOCKED_BY_AUTHOR] {
            assert!(!for_all(false, shield), "{shield:?}");
            assert!(for_all(true, shield), "one sees what is one's own");
        }
    }

    #[test]
    fn s9_an_item_of_a_private_author_is_shown_to_followers_alone() {
        let for_all =
            |own, follows, shields| shows_original(own, Terms { follows, shields, private: true }, Reach::Followers);
        assert!(for_all(false, true, Shields(0)) && for_all(true, false, Shields(0)));
        assert!(!for_all(false, false, Shields(0)), "to a stranger no repost, ranking, profile or search brings it");
        assert!(!for_all(false, true, Shields::MUTED), "a shield hides it as ever");
    }

    #[test]
    fn s8_an_original_for_named_readers_is_shown_to_them_unless_a_block_is_up() {
        let terms = |shields| Terms { shields, private: true, follows: false };
        let addressed = |shields, to| shows_original(false, terms(shields), Reach::Named(to));
        assert!(addressed(Shields(0), true) && addressed(Shields::MUTED, true));
        assert!(!addressed(Shields(0), false) && !addressed(Shields::BLOCKED_BY_AUTHOR, true));
        assert!(shows_original(true, terms(Shields(0)), Reach::Named(false)), "its author sees it");
    }

    #[test]
    fn s9_a_narrowed_original_is_shown_to_followers_in_its_audience_alone() {
        let terms = |follows| Terms { follows, ..Terms::default() };
        let narrowed = |follows, has| shows_original(false, terms(follows), Reach::Narrowed(has));
        assert!(narrowed(true, true));
        assert!(!narrowed(true, false) && !narrowed(false, true), "a repost shows it to nobody else");
        assert!(shows_original(true, terms(false), Reach::Narrowed(false)), "its author sees it");
    }
}
