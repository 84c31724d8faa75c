//! Who sees an item: the one predicate of the API, of subscriptions to items, and of the look at those that stand.
//!
//! A reader sees an item of its own, of an author whom it follows without a shield between them, or that is addressed to
//! it. A backend sees all.

use std::collections::BTreeSet;
use std::sync::Arc;

use feedgate_common::archive::{Graph, Items, Outboxes};
use feedgate_common::error::Result;
use feedgate_common::{Archive, Item, UserNo};

/// Whether a reader sees an item that lives. `own` says that the reader is its author. `addressed` says of an item for
/// named readers whether the reader is one of them, and is `None` for any other item.
fn sees(own: bool, follows: bool, addressed: Option<bool>) -> bool {
    own || addressed.unwrap_or(follows)
}

/// The items of `found` that the reader sees, with `None` for the others: at most two reads of the store. A reader that
/// was never named is `None`.
pub(crate) async fn seen_by(
    archive: &(impl Items + Graph + ?Sized),
    reader: Option<UserNo>,
    found: Vec<Option<Arc<Item>>>,
) -> Result<Vec<Option<Arc<Item>>>> {
    // A user that was never named follows nobody, and nothing is addressed to it.
    let Some(me) = reader else { return Ok(vec![None; found.len()]) };
    let (mut authors, mut direct) = (BTreeSet::new(), Vec::new());
    for item in found.iter().flatten().filter(|item| item.author_no != me) {
        if item.direct {
            direct.push(item.id);
        } else {
            authors.insert(item.author_no);
        }
    }
    let authors = Vec::from_iter(authors);
    let follows = if authors.is_empty() { vec![] } else { archive.followees_among(me, &authors).await? };
    let addressed = if direct.is_empty() { vec![] } else { archive.addressed(me, &direct).await? };
    let seen = |item: &Arc<Item>| {
        let addressed = item.direct.then(|| addressed.contains(&item.id));
        sees(item.author_no == me, follows.contains(&item.author_no), addressed)
    };
    Ok(found.into_iter().map(|item| item.filter(seen)).collect())
}

/// Gives which of `readers` see the item, in no order. The item must live. This takes one read of the store for all
/// readers; for an item that is for named readers it takes one read for each.
pub(crate) async fn who_sees(archive: &dyn Archive, item: &Item, readers: &[UserNo]) -> Result<Vec<UserNo>> {
    if !item.direct {
        let following = Outboxes::followers_among(archive, item.author_no, readers).await?;
        let own = readers.iter().filter(|reader| sees(item.author_no == **reader, false, None));
        return Ok(own.copied().chain(following).collect());
    }
    let mut seeing = vec![];
    for reader in readers {
        let own = item.author_no == *reader;
        if sees(own, false, Some(!own && !archive.addressed(*reader, &[item.id]).await?.is_empty())) {
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
        assert!(sees(true, false, None) && sees(true, false, Some(false)));
        assert!(sees(false, true, None) && !sees(false, false, None));
        assert!(sees(false, false, Some(true)) && !sees(false, true, Some(false)));
    }
}
