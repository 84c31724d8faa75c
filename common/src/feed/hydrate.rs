//! From entries, which hold references, to changes with the items they speak of.

use std::sync::Arc;

use serde::Serialize;

use super::{Changes, Feeds, cursor_text};
use crate::around::Viewer;
use crate::error::Result;
use crate::{DisplayKey, Entry, FeedId, InboxKey, Item, ItemId, Op, UserId, UserNo};

/// A change as clients see it, in publications and in `…/changes`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Change {
    /// An item appears in the feed.
    Add {
        /// The item as it is now, which may be a later version than was published; with the rank of this change.
        item: Arc<Item>,
    },
    /// An item has a new version.
    Update {
        /// The item as it is now, with the rank of this change.
        item: Arc<Item>,
    },
    /// An item is gone; unknown to the device is fine.
    Delete {
        /// The item that is gone.
        item_id: ItemId,
    },
    /// Everything of an author leaves the feed.
    Forget {
        /// The author whose items all leave the feed.
        author: UserId,
        /// Given if the author is followed now and the changes after this one do not tell all that the follow shows.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        rest: Option<Rest>,
    },
}

/// Where pages have to tell the rest of what a follow shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rest {
    /// The place of the first item that only pages have. What a device shows at or below it may have gaps.
    pub floor: Floor,
    /// The cursor of the page that begins with that item.
    pub next: String,
}

/// A place in display order, in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// The rank of the item.
    pub rank: i64,
    /// The id of the item.
    pub id: ItemId,
}

impl Rest {
    fn below(key: DisplayKey) -> Self {
        let next = cursor_text(key.just_above().unwrap_or(key));
        Self { floor: Floor { rank: key.rank, id: key.item }, next }
    }
}

impl Changes {
    /// The changes that `entries` of such an inbox stand for, one each, in order. An `add` or `update` whose item is
    /// gone by now, or which the feed does not show, is a `delete`.
    pub async fn hydrate<'a>(
        &self,
        key: InboxKey,
        entries: impl Iterator<Item = &'a Entry> + Clone,
    ) -> Result<Vec<Change>> {
        let mut ids: Vec<ItemId> =
            entries.clone().filter(|e| matches!(e.op, Op::Add | Op::Update)).map(|e| e.key.item).collect();
        ids.sort_unstable();
        ids.dedup();
        let found = if ids.is_empty() { vec![] } else { self.feeds.shown(key, &ids).await? };
        let shown = |id: &ItemId| found[ids.binary_search(id).ok()?].clone();

        let forgotten: Vec<UserNo> = entries.clone().filter(|e| e.op == Op::Forget).map(|e| e.author).collect();
        let names = if forgotten.is_empty() { vec![] } else { self.feeds.archive.user_ids(&forgotten).await? };
        let mut names = names.into_iter();

        let mut changes = Vec::with_capacity(entries.size_hint().0);
        for entry in entries {
            let item_id = entry.key.item;
            changes.push(match (entry.op, shown(&item_id)) {
                (Op::Add, Some(item)) => Change::Add { item: item.at(entry.key) },
                (Op::Update, Some(item)) => Change::Update { item: item.at(entry.key) },
                (Op::Add | Op::Update | Op::Delete, _) => Change::Delete { item_id },
                (Op::Forget, _) => match names.next() {
                    Some(author) => Change::Forget { author, rest: entry.floor().map(Rest::below) },
                    None => return Err(crate::StoreError::corrupt("a forgotten author has no name")),
                },
            });
        }
        Ok(changes)
    }
}

impl Feeds {
    /// The items of these ids as the feed shows them to its reader now, in the order asked; `None` for one that it does
    /// not show. A feed shows no item that is too old for it. A ranked feed shows an item if its reader may see it as
    /// the original of a repost. It says of each item that it is addressed to the reader: no unfollow takes it away.
    pub async fn shown(&self, key: InboxKey, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        let (is_shown, ranked) = (self.shown_in(key.feed), self.named().is_ranked(key.feed));
        let found = match ranked {
            true => self.archive.originals(ids, Viewer::User(Some(key.reader))).await?,
            false => self.archive.items(ids).await?,
        };
        let shown = |item: Option<Arc<Item>>| {
            let item = item.filter(&is_shown)?;
            Some(if ranked { Arc::new(Item { direct: true, ..(*item).clone() }) } else { item })
        };
        Ok(found.into_iter().map(shown).collect())
    }

    /// Whether this feed shows an item now: not if it is too old for it.
    fn shown_in(&self, feed: FeedId) -> impl Fn(&Arc<Item>) -> bool + use<> {
        let expired = self.retention.now().and_then(|now| self.named().expired_before(feed, now));
        move |item| expired.is_none_or(|then| item.published_at >= then)
    }
}
