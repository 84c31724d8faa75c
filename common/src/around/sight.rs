//! Who sees an item: the one predicate of the API, of subscriptions to items, of push notifications, and of the look at
//! those that stand.
//!
//! ```text
//!   for the followers          the reader follows the author, and no shield is up between the two
//!   narrowed to an audience    the same, and the audience has the reader
//!   for named readers          the reader is one of them, and no block is up
//!   one's own                  always
//! ```
//!
//! A backend sees all.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::archive::{Audiences, Graph, Items, Outboxes};
use crate::error::Result;
use crate::{Archive, Item, UserNo};

/// For whom an item is, and whether a user is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// For all who follow its author.
    Followers,
    /// For those of them who are in its audience; whether the user is in it.
    Narrowed(bool),
    /// For named readers; whether the user is one of them.
    Named(bool),
}

impl Reach {
    /// The reach of an item. `has` says of one that is not for all followers whether its readers have the user.
    pub fn of(item: &Item, has: bool) -> Self {
        match (item.direct, item.narrowed) {
            (true, _) => Self::Named(has),
            (false, true) => Self::Narrowed(has),
            (false, false) => Self::Followers,
        }
    }
}

/// Whether a reader sees an item that lives. `own` says that the reader is its author, and `follows` that the reader's
/// edge to the author is in effect.
pub fn sees(own: bool, follows: bool, reach: Reach) -> bool {
    own || match reach {
        Reach::Followers => follows,
        Reach::Narrowed(has) => has && follows,
        Reach::Named(has) => has,
    }
}

/// The items of `found` that the reader sees, with `None` for the others: at most two reads of the store. A reader that
/// was never named is `None`.
pub async fn seen_by(
    archive: &(impl Items + Graph + ?Sized),
    reader: Option<UserNo>,
    found: Vec<Option<Arc<Item>>>,
) -> Result<Vec<Option<Arc<Item>>>> {
    // A user that was never named follows nobody, and nothing is addressed to it.
    let Some(me) = reader else { return Ok(vec![None; found.len()]) };
    let (mut authors, mut chosen) = (BTreeSet::new(), Vec::new());
    for item in found.iter().flatten().filter(|item| item.author_no != me) {
        if item.direct || item.narrowed {
            chosen.push(item.id);
        }
        if !item.direct {
            authors.insert(item.author_no);
        }
    }
    let authors = Vec::from_iter(authors);
    let follows = if authors.is_empty() { vec![] } else { archive.followees_among(me, &authors).await? };
    let addressed = if chosen.is_empty() { vec![] } else { archive.addressed(me, &chosen).await? };
    let seen = |item: &Arc<Item>| {
        let reach = Reach::of(item, addressed.contains(&item.id));
        sees(item.author_no == me, follows.contains(&item.author_no), reach)
    };
    Ok(found.into_iter().map(|item| item.filter(seen)).collect())
}

/// Gives which of `readers` see the item, in no order. The item must live. This takes one read of the store for all
/// readers, and two if it is narrowed; for an item that is for named readers it takes one read for each.
pub async fn who_sees(archive: &dyn Archive, item: &Item, readers: &[UserNo]) -> Result<Vec<UserNo>> {
    let mut seeing = vec![];
    if item.direct {
        for reader in readers {
            let own = item.author_no == *reader;
            let has = !own && !archive.addressed(*reader, &[item.id]).await?.is_empty();
            if sees(own, false, Reach::of(item, has)) {
                seeing.push(*reader);
            }
        }
        return Ok(seeing);
    }
    let following: HashSet<UserNo> =
        Outboxes::followers_among(archive, item.author_no, readers).await?.into_iter().collect();
    let audience = if item.narrowed { Audiences::audience(archive, item.id).await? } else { vec![] };
    for reader in readers {
        let reach = Reach::of(item, audience.binary_search(reader).is_ok());
        if sees(item.author_no == *reader, following.contains(reader), reach) {
            seeing.push(*reader);
        }
    }
    Ok(seeing)
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
