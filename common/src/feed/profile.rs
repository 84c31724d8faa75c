//! A page of the items that a user has published to one feed, or has sent to readers, as somebody may see them. Pinned
//! items stand before the first page of a profile, and on no page behind it.

use std::sync::Arc;

use super::limit::{FETCH, Limit, Stretch};
use super::search::Seeing;
use crate::archive::{Items, Pins};
use crate::error::Result;
use crate::{DisplayKey, FeedId, Item, ItemId, UserNo};

/// How many items one page looks at, at least. A page that meets more of them which may not be seen ends there, and the
/// next one goes on.
const LOOKED_AT: usize = 500;

/// Which items of a user a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemsOf {
    /// The items that the user has published to this feed.
    Outbox(UserNo, FeedId),
    /// The items that the user has addressed to readers, in whatever feed of theirs.
    Sent(UserNo),
}

/// Gives the items that the user has pinned on this profile and that live and may be seen, the last pinned first.
/// Nothing that was sent is pinned. Takes at most two reads of the store, or one if none is pinned. Fails if the store
/// does.
pub async fn pinned(archive: &(impl Pins + ?Sized), of: ItemsOf, seeing: &dyn Seeing) -> Result<Vec<Arc<Item>>> {
    let ItemsOf::Outbox(author, feed) = of else { return Ok(vec![]) };
    let pins = archive.pins(author).await?;
    let ids: Vec<ItemId> = pins.iter().filter(|pin| pin.feed == feed).map(|pin| pin.item).collect();
    let seen = if ids.is_empty() { vec![] } else { seeing.of(&ids).await? };
    Ok(seen.into_iter().flatten().collect())
}

/// Reads a page of the items `of` a user. It begins strictly below `before` and has the newest items first. It leaves
/// out items that do not live, that may not be seen, and that are in `shown`. Also gives below which key the next page
/// begins: `None` if everything was looked at, and only then. If an item is deleted between the read of the list and
/// the read of the item, the next one takes its place. Fails if a store does.
pub async fn profile(
    archive: &(impl Items + ?Sized),
    of: ItemsOf,
    seeing: &dyn Seeing,
    mut before: Option<DisplayKey>,
    page: Limit,
    shown: &[ItemId],
) -> Result<(Vec<Arc<Item>>, Option<DisplayKey>)> {
    let (mut stretch, mut looked) = (Stretch::new(page), 0);
    while looked < LOOKED_AT {
        // If some items may not be seen, many more may follow: then each read asks for as many as one read may.
        let asked = if looked == 0 { stretch.wants() + shown.len() } else { FETCH };
        let keys = match of {
            ItemsOf::Outbox(author, feed) => archive.profile(author, feed, before, asked).await?,
            ItemsOf::Sent(user) => archive.sent(user, before, asked).await?,
        };
        let left: Vec<DisplayKey> = keys.iter().filter(|key| !shown.contains(&key.item)).copied().collect();
        let ids: Vec<ItemId> = left.iter().map(|key| key.item).collect();
        let seen = if ids.is_empty() { vec![] } else { seeing.of(&ids).await? };
        stretch.extend(seen.into_iter().zip(left).filter_map(|(item, key)| Some(item?.at(key))));
        if stretch.is_cut() || keys.len() < asked {
            return Ok(stretch.finish());
        }
        before = keys.last().copied();
        looked += keys.len();
    }
    Ok((stretch.finish().0, before))
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::Millis;
    use crate::Replaced;
    use crate::around::Viewer;

    const ANN: UserNo = UserNo(1);

    /// A store with items 1 to `count` of one author, each with its id as rank. Those of `hidden` may not be seen.
    struct Store {
        count: u64,
        hidden: RangeInclusive<u64>,
        reads: AtomicUsize,
    }

    #[async_trait]
    impl Items for Store {
        async fn items(&self, _: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
            unreachable!("items are read by who may see them")
        }
        async fn originals(&self, _: &[ItemId], _: Viewer) -> Result<Vec<Option<Arc<Item>>>> {
            unreachable!("items are read by who may see them")
        }
        async fn reposts(&self, _: ItemId, _: Option<ItemId>, _: usize) -> Result<Vec<ItemId>> {
            unreachable!("no reposts are asked for")
        }
        async fn versions(&self, _: ItemId) -> Result<Vec<Replaced>> {
            unreachable!("no versions are asked for")
        }
        async fn published(&self, _: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>> {
            unreachable!("no time is asked for")
        }
        async fn item_by_foreign_id(&self, _: &str) -> Result<Option<ItemId>> {
            unreachable!("no key is asked for")
        }
        async fn profile(
            &self,
            _: UserNo,
            _: FeedId,
            before: Option<DisplayKey>,
            limit: usize,
        ) -> Result<Vec<DisplayKey>> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            let below = before.map_or(self.count, |key| key.item.0 - 1);
            Ok((1..=below).rev().take(limit).map(|id| item(id).key()).collect())
        }
        async fn sent(&self, _: UserNo, _: Option<DisplayKey>, _: usize) -> Result<Vec<DisplayKey>> {
            unreachable!("what was sent comes by the same way")
        }
        async fn addressed(&self, _: UserNo, _: &[ItemId]) -> Result<Vec<ItemId>> {
            unreachable!("items are read by who may see them")
        }
    }

    #[async_trait]
    impl Seeing for Store {
        async fn of(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
            Ok(ids.iter().map(|id| (!self.hidden.contains(&id.0)).then(|| item(id.0))).collect())
        }
    }

    fn item(id: u64) -> Arc<Item> {
        Arc::new(Item { rank: id.cast_signed(), ..Item::sample(id) })
    }

    fn walk(count: u64, hidden: RangeInclusive<u64>, limit: usize) -> (Vec<usize>, usize) {
        walk_without(&[], count, hidden, limit)
    }

    /// The lengths of all pages of `limit`, after a check that together they hold each item that may be seen and was
    /// not shown before, once and in order; and the most reads that a page has taken.
    fn walk_without(shown: &[u64], count: u64, hidden: RangeInclusive<u64>, limit: usize) -> (Vec<usize>, usize) {
        let shown: Vec<ItemId> = shown.iter().map(|id| ItemId(*id)).collect();
        let store = Store { count, hidden, reads: AtomicUsize::new(0) };
        let (mut all, mut pages, mut most, mut before) = (vec![], vec![], 0, None);
        let of = ItemsOf::Outbox(ANN, FeedId::MAIN);
        loop {
            store.reads.store(0, Ordering::SeqCst);
            let page = profile(&store, of, &store, before, limit.into(), &shown);
            let (items, next) = page.now_or_never().expect("the store answers at once").unwrap();
            most = most.max(store.reads.load(Ordering::SeqCst));
            assert!(items.len() <= limit);
            pages.push(items.len());
            all.extend(items.iter().map(|item| item.id.0));
            before = next;
            if before.is_none() {
                break;
            }
        }
        let is_wanted = |id: &u64| !store.hidden.contains(id) && !shown.contains(&ItemId(*id));
        let wanted: Vec<u64> = (1..=count).rev().filter(is_wanted).collect();
        assert_eq!(all, wanted);
        (pages, most)
    }

    #[test]
    fn s13_pages_are_full_though_some_items_may_not_be_seen() {
        assert_eq!(walk(50, 0..=0, 20), (vec![20, 20, 10], 1), "all may be seen: one read a page");
        assert_eq!(walk(50, 31..=50, 20).0, [20, 10]);
        assert_eq!(walk(60, 25..=45, 20).0, [20, 19]);
        assert_eq!(walk(40, 1..=20, 20).0, [20], "what may not be seen is no next page");
        assert_eq!(walk(0, 0..=0, 20).0, [0]);
    }

    #[test]
    fn s13_what_was_shown_before_is_on_no_page_and_costs_no_read() {
        assert_eq!(walk_without(&[50, 45, 1], 50, 0..=0, 20), (vec![20, 20, 7], 1));
        assert_eq!(walk_without(&[3, 2, 1], 3, 0..=0, 20), (vec![0], 1));
        assert_eq!(walk_without(&[21, 20], 40, 31..=40, 20).0, [20, 8]);
    }

    #[test]
    fn s13_a_page_that_meets_too_much_that_may_not_be_seen_goes_on() {
        for limit in [1, 20, 100] {
            let (pages, most) = walk(1500, 1..=1400, limit);
            assert!(pages.contains(&0), "{pages:?}");
            assert!(most <= LOOKED_AT / FETCH + 2, "a page takes {most} reads");
        }
    }
}
