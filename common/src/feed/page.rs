//! A page in display order: from the log above its floor, from the Archive at or below it.
//!
//! ```text
//!   newest ──────────── floor ─────────────────▶ oldest
//!     adds that live in the log │ a window of the Archive's adds
//! ```
//!
//! Invariants: strictly descending, no repeat, no gap (I7); `next` is `None` exactly at the end (I8), and a page is
//! shorter than asked only there or where its bodies fill it: items deleted meanwhile, and those too old for a feed
//! with a time to live, are skipped without shortening it. A feed with a cap ends behind that many of its newest adds.

mod cap;
mod descent;
mod kept;
#[cfg(test)]
mod tests;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use super::{Changes, Limit, Stretch};
use crate::error::Result;
use crate::inboxes::Numbered;
use crate::{DisplayKey, FeedId, InboxKey, Item, ItemId, Op, Position, UserNo};
use cap::End;
use descent::{Descent, Leg, above_floor};
use kept::Windows;
use window::Reading;

/// How many adds one read of the Archive asks for: more than a page, for the pages that follow.
const READ_MAX: usize = 1000;

/// A stretch of a feed.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The items of the page, the newest first.
    pub items: Vec<Arc<Item>>,
    /// Where the next page begins (strictly below); `None` at the end.
    pub next: Option<DisplayKey>,
    /// The log's head, read before the page: changes after it come on top.
    pub position: Position,
}

/// The pages of all feeds, with the windows that the next pages go on in.
pub struct Pages {
    changes: Arc<Changes>,
    windows: Windows,
}

impl Pages {
    /// Pages above whose floor stands what `changes` reads.
    pub fn new(changes: Arc<Changes>) -> Self {
        Self { changes, windows: Windows::default() }
    }

    /// At most as much as `limit` says, strictly below `before`, an item's place or any other. A plain number limits
    /// the items only.
    pub async fn page(&self, key: InboxKey, before: Option<DisplayKey>, limit: impl Into<Limit>) -> Result<Page> {
        let (feeds, log) = (&self.changes.feeds, self.changes.log(key).await?);
        let now = feeds.retention.now();
        let shown = above_floor(&log);
        let end = self.end(key, &shown, log.floor).await?;
        let mut stretch = Stretch::new(limit.into());
        let mut descent = Descent::new(&log, shown, before, end, READ_MAX);
        while !stretch.is_cut() {
            match descent.next(stretch.wants(), || self.windows.get(key, now?)) {
                Leg::Keys(keys) => stretch.extend(self.shown(key.feed, &keys).await?),
                Leg::Read(Reading { before, least_rank, limit }) => {
                    let adds = feeds.archive.feed_below(key, before, least_rank, feeds.backfill, limit).await?;
                    descent.told(&adds);
                }
                Leg::End => break,
            }
        }
        if let (Some(window), Some(now)) = (descent.into_window(), now) {
            self.windows.keep(key, window, now);
        }
        let (items, next) = stretch.finish();
        Ok(Page { items, next, position: log.head })
    }

    /// The last add that a feed with a cap shows; `None` if it ends by itself.
    async fn end(&self, key: InboxKey, shown: &[DisplayKey], floor: Option<DisplayKey>) -> Result<Option<DisplayKey>> {
        let feeds = &self.changes.feeds;
        let Some(most) = feeds.named.cap(key.feed) else { return Ok(None) };
        match End::of(shown, floor, most) {
            End::At(end) => Ok(end),
            End::Below(Reading { before, least_rank, limit }) => {
                let below = feeds.archive.feed_below(key, before, least_rank, feeds.backfill, limit).await?;
                Ok(below.get(limit - 1).map(|add| add.key))
            }
        }
    }

    /// The items behind `keys` that still live and are not too old.
    async fn shown(&self, feed: FeedId, keys: &[DisplayKey]) -> Result<impl Iterator<Item = Arc<Item>>> {
        let feeds = &self.changes.feeds;
        let ids: Vec<ItemId> = keys.iter().map(|key| key.item).collect();
        Ok(feeds.archive.items(&ids).await?.into_iter().flatten().filter(feeds.shown_in(feed)))
    }
}

/// What a device shows after taking in `entries` from nothing, in no particular order.
pub fn living(entries: &[Numbered]) -> Vec<DisplayKey> {
    let mut shown: HashMap<ItemId, (UserNo, DisplayKey)> = HashMap::with_capacity(entries.len());
    let mut by_author: HashMap<UserNo, Vec<ItemId>> = HashMap::new();
    let forgets = entries.iter().any(|n| n.entry.op == Op::Forget);
    for Numbered { entry, .. } in entries {
        match entry.op {
            Op::Add => {
                shown.insert(entry.key.item, (entry.author, entry.key));
                if forgets && !entry.is_direct() {
                    by_author.entry(entry.author).or_default().push(entry.key.item);
                }
            }
            Op::Update => {}
            Op::Delete => {
                shown.remove(&entry.key.item);
            }
            Op::Forget => {
                for item in by_author.remove(&entry.author).unwrap_or_default() {
                    shown.remove(&item);
                }
            }
        }
    }
    shown.into_values().map(|(_, key)| key).collect()
}
