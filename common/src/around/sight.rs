//! Who sees an item: the one predicate that the API, push notifications and subscriptions to items use. It also decides
//! whether a subscription that stands may go on.
//!
//! ```text
//!   for the followers          the reader follows the author; or a ranking of the reader has it, or it mentions the
//!                              reader, and the author is not private; no shield is up
//!   narrowed to an audience    the reader follows the author, no shield is up, and the audience has the reader
//!   for named readers          the reader is one of them, and no block is up
//!   one's own                  always
//! ```
//!
//! A backend sees all. A ranking or a mention opens an item as a repost [shows](super::shows_original) it, and so
//! nothing that is for some readers alone.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::original::{Terms, Viewer, shows_original};
use super::reach::{Reach, sees};
use crate::archive::{Audiences, Graph, Items, Names, Outboxes, Rankings};
use crate::error::Result;
use crate::{Archive, Item, ItemId, UserId, UserNo};

/// Whether a ranking opens its items to its reader, and a mention its item to the mentioned user. `terms` are those
/// between this reader and the author.
pub fn opens(terms: Terms, reach: Reach) -> bool {
    reach == Reach::Followers && shows_original(false, terms, reach)
}

/// The items of `found` that the reader sees, with `None` for the others: at most five reads of the store, and one if
/// the reader follows all authors. A reader that was never named is `None`.
pub async fn seen_by(
    archive: &(impl Items + Graph + Rankings + Names + ?Sized),
    reader: Option<UserNo>,
    found: Vec<Option<Arc<Item>>>,
) -> Result<Vec<Option<Arc<Item>>>> {
    // A user that was never named follows nobody, and nothing is addressed to it.
    let Some(me) = reader else { return Ok(vec![None; found.len()]) };
    let brought = brought_to(archive, me, &found).await?;
    let unseen = found.iter().flatten().filter(|item| !brought.contains(&item.id)).map(|item| (me, &**item));
    let opened = opened_to(archive, unseen.collect()).await?;
    let is_seen = |item: &Arc<Item>| brought.contains(&item.id) || opened.contains(&(me, item.id));
    Ok(found.into_iter().map(|item| item.filter(is_seen)).collect())
}

/// Gives which of the items the reader [sees](super::sees) by a follow, by an audience or by name, without rankings.
/// Takes at most two reads of the store.
pub async fn brought_to(
    archive: &(impl Items + Graph + ?Sized),
    me: UserNo,
    found: &[Option<Arc<Item>>],
) -> Result<HashSet<ItemId>> {
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
    let is_brought = |item: &&Arc<Item>| {
        let reach = Reach::of(item, addressed.contains(&item.id));
        sees(item.author_no == me, follows.contains(&item.author_no), reach)
    };
    Ok(found.iter().flatten().filter(is_brought).map(|item| item.id).collect())
}

/// Takes pairs of a reader and an item. Gives those in which a ranking of the reader, or a mention, opens the item.
async fn opened_to(
    archive: &(impl Items + Rankings + Names + ?Sized),
    unseen: Vec<(UserNo, &Item)>,
) -> Result<HashSet<(UserNo, ItemId)>> {
    let mut found = opened(archive, unseen.iter().copied()).await?;
    let left = unseen.into_iter().filter(|(reader, item)| !found.contains(&(*reader, item.id)));
    let named = named(archive, left).await?;
    found.extend(named);
    Ok(found)
}

/// Takes pairs of a reader and an item. Gives those in which a mention opens the item to the reader. Takes no read of
/// the store if no item mentions anybody; else one, and one more for each reader who is mentioned.
async fn named(
    archive: &(impl Items + Names + ?Sized),
    unseen: impl Iterator<Item = (UserNo, &Item)>,
) -> Result<HashSet<(UserNo, ItemId)>> {
    let may_open = |item: &Item| !item.mentions.is_empty() && opens(Terms::default(), Reach::of(item, false));
    let asked: Vec<(UserNo, &Item)> = unseen.filter(|(_, item)| may_open(item)).collect();
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let readers = Vec::from_iter(asked.iter().map(|(reader, _)| *reader).collect::<BTreeSet<UserNo>>());
    let names: HashMap<UserNo, UserId> = readers.iter().copied().zip(archive.user_ids(&readers).await?).collect();
    let mut found = HashSet::new();
    for reader in readers {
        let of_reader = asked.iter().filter(|(who, item)| *who == reader && item.mentions.contains(&names[&reader]));
        let ids: Vec<ItemId> = of_reader.map(|(_, item)| item.id).collect();
        if !ids.is_empty() {
            let shown = archive.originals(&ids, Viewer::User(Some(reader))).await?;
            found.extend(shown.into_iter().flatten().map(|item| (reader, item.id)));
        }
    }
    Ok(found)
}

/// Takes pairs of a reader and an item. Gives those in which a ranking of the reader opens the item. Takes one read of
/// the store, and none if no ranking could open any of the items.
async fn opened(
    archive: &(impl Rankings + ?Sized),
    unseen: impl Iterator<Item = (UserNo, &Item)>,
) -> Result<HashSet<(UserNo, ItemId)>> {
    let reach: HashMap<(UserNo, ItemId), Reach> = unseen
        .map(|(reader, item)| ((reader, item.id), Reach::of(item, false)))
        .filter(|(_, reach)| opens(Terms::default(), *reach))
        .collect();
    if reach.is_empty() {
        return Ok(HashSet::new());
    }
    let asked: Vec<_> = reach.keys().copied().collect();
    let ranked = archive.ranked(&asked).await?.into_iter();
    Ok(ranked.filter(|(pair, terms)| opens(*terms, reach[pair])).map(|(pair, _)| pair).collect())
}

/// Gives which of `readers` see the item, in no order. The item must live. This takes one read of the store for all
/// readers, two if it is narrowed or some do not follow, and some more if it mentions some of these. For an item that
/// is for named readers it takes one read for each.
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
    let mut others = vec![];
    for reader in readers {
        let reach = Reach::of(item, audience.binary_search(reader).is_ok());
        let sees = sees(item.author_no == *reader, following.contains(reader), reach);
        if sees { &mut seeing } else { &mut others }.push(*reader);
    }
    let opened = opened_to(archive, others.into_iter().map(|reader| (reader, item)).collect()).await?;
    seeing.extend(opened.into_iter().map(|(reader, _)| reader));
    Ok(seeing)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::graph::Shields;
    use crate::ranking::{NoSuchItem, Ranked, Renewed};
    use crate::{DisplayKey, InboxKey, Millis};

    #[test]
    fn s11_a_ranking_opens_what_is_for_all_followers_and_is_behind_no_shield() {
        let open = Terms::default();
        assert!(opens(open, Reach::Followers));
        for shields in [Shields::MUTED, Shields::HIDDEN, Shields::BLOCKED_BY_READER, Shields::BLOCKED_BY_AUTHOR] {
            assert!(!opens(Terms { shields, ..open }, Reach::Followers), "{shields:?}");
        }
        assert!(!opens(Terms { private: true, ..open }, Reach::Followers), "s9: who does not follow a private author");
        for reach in [Reach::Narrowed(true), Reach::Narrowed(false), Reach::Named(true), Reach::Named(false)] {
            assert!(!opens(open, reach), "{reach:?} says who sees it");
        }
    }

    /// Items with an even number stand in rankings of all readers; item 4 is behind a mute. It counts its reads.
    struct Store(AtomicUsize);

    #[async_trait]
    impl Rankings for Store {
        async fn rank(
            &self,
            _: InboxKey,
            _: &[DisplayKey],
            _: Millis,
        ) -> Result<std::result::Result<Ranked, NoSuchItem>> {
            unreachable!("nothing is written")
        }
        async fn ranking(&self, _: InboxKey) -> Result<Vec<DisplayKey>> {
            unreachable!("no ranking is read as a whole")
        }
        async fn ranked(&self, asked: &[(UserNo, ItemId)]) -> Result<Vec<((UserNo, ItemId), Terms)>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let shields = |item: ItemId| if item.0 == 4 { Shields::MUTED } else { Shields(0) };
            let terms = |item| Terms { shields: shields(item), ..Terms::default() };
            Ok(asked.iter().filter(|(_, item)| item.0 % 2 == 0).map(|pair| (*pair, terms(pair.1))).collect())
        }
        async fn renew_rankings(&self, _: Millis, _: usize) -> Result<Renewed> {
            unreachable!("nothing is written")
        }
    }

    /// Which of the items rankings open to reader 2, and how many reads that takes.
    fn opened_to_2(items: &[Item]) -> (Vec<u64>, usize) {
        let store = Store(AtomicUsize::new(0));
        let asked = opened(&store, items.iter().map(|item| (UserNo(2), item)));
        let found = asked.now_or_never().expect("the store answers at once").unwrap();
        let ids: BTreeSet<u64> = found.into_iter().map(|(_, item)| item.0).collect();
        (Vec::from_iter(ids), store.0.into_inner())
    }

    #[test]
    fn s11_rankings_are_asked_once_for_all_items_and_not_where_they_open_nothing() {
        assert_eq!(opened_to_2(&[]), (vec![], 0), "what is seen otherwise is not asked about");
        assert_eq!(opened_to_2(&[1, 2, 3, 4, 6].map(Item::sample)), (vec![2, 6], 1), "item 4 is behind a mute");
        let some = [Item { narrowed: true, ..Item::sample(2) }, Item { direct: true, ..Item::sample(6) }];
        assert_eq!(opened_to_2(&some), (vec![], 0));
    }
}
