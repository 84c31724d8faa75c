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
mod unread;
mod window;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Cards, Changes, Feeds, Limit, Stretch, people_of};
use crate::error::Result;
use crate::inboxes::{Log, Numbered};
use crate::{DisplayKey, InboxKey, Item, ItemId, Op, Position, UserNo};
use cap::End;
pub(super) use descent::is_above;
use descent::{Descent, Leg, above_floor};
use futures_util::future::try_join;
use kept::Windows;
use rustc_hash::{FxBuildHasher, FxHashMap};
pub use unread::{Saw, Sight};

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
    /// How many items of the feed the reader has not seen, as in [`Sight::unread`]; counted at `position`.
    pub unread: usize,
    /// What is to be shown of the authors of the items, read after the items.
    pub people: Cards,
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
        let feeds = &self.changes.feeds;
        let (log, seen) = try_join(self.changes.log(key), feeds.archive.seen(key)).await?;
        let now = feeds.retention.now();
        let adds = living_adds(&log.entries);
        let shown = above_floor(&adds, log.floor);
        let end = feeds.end(key, &shown, log.floor).await?;
        let unread = self.unread(key, &log, &adds, end, seen).await?;
        let mut stretch = Stretch::new(limit.into());
        let mut descent = Descent::new(&log, shown, before, end, READ_MAX);
        while !stretch.is_cut() {
            match descent.next(stretch.wants(), || self.windows.get(key, now?)) {
                Leg::Keys(keys) => stretch.extend(self.shown(key, &keys).await?),
                Leg::Read(below) => descent.told(&feeds.archive.feed_below(key, below, feeds.backfill).await?),
                Leg::End => break,
            }
        }
        self.keep(key, descent);
        let (items, next) = stretch.finish();
        let people = people_of(&*feeds.archive, &items).await?;
        Ok(Page { items, next, position: log.head, unread, people })
    }

    /// Keeps the window that `descent` has come through, if it has come that far, for the next page or count.
    fn keep(&self, key: InboxKey, descent: Descent<'_>) {
        if let (Some(window), Some(now)) = (descent.into_window(), self.changes.feeds.retention.now()) {
            self.windows.keep(key, window, now);
        }
    }

    /// The items behind `places` that the feed shows, each at the place that is given.
    async fn shown(&self, key: InboxKey, places: &[DisplayKey]) -> Result<impl Iterator<Item = Arc<Item>>> {
        let ids: Vec<ItemId> = places.iter().map(|place| place.item).collect();
        let found = self.changes.feeds.shown(key, &ids).await?.into_iter().zip(places);
        Ok(found.filter_map(|(item, place)| Some(item?.at(*place))))
    }
}

impl Feeds {
    /// The last add that a feed with a cap shows; `None` if it ends by itself. `shown` is what the log shows above its
    /// floor, oldest first.
    async fn end(&self, key: InboxKey, shown: &[DisplayKey], floor: Option<DisplayKey>) -> Result<Option<DisplayKey>> {
        let Some(most) = self.named().cap(key.feed) else { return Ok(None) };
        match End::of(shown, floor, most) {
            End::At(end) => Ok(end),
            End::Below(below) => {
                let adds = self.archive.feed_below(key, below, self.backfill).await?;
                Ok(adds.get(below.limit - 1).map(|add| add.key))
            }
        }
    }
}

/// The items that a device shows after taking in `entries` from nothing, in the order of the log.
pub fn living(entries: &[Numbered]) -> Vec<DisplayKey> {
    living_adds(entries).into_iter().map(|add| add.key).collect()
}

/// An item that stands in a feed, by its log or by the Archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundAdd {
    /// The place of the item.
    pub(super) key: DisplayKey,
    pub(super) author: UserNo,
    /// Whether it is addressed to the reader.
    pub(super) direct: bool,
}

/// The items that a log shows above its floor.
pub(super) fn shown_above(log: &Log) -> BTreeSet<FoundAdd> {
    let above = living_adds(&log.entries).into_iter().filter(|add| is_above(log.floor, &add.key));
    above.map(|Shown { key, author, direct, .. }| FoundAdd { key, author, direct }).collect()
}

/// An add that a device shows.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// The sequence id of the change in the log.
    seq: u64,
    author: UserNo,
    key: DisplayKey,
    direct: bool,
}

/// The adds of the items that a device shows after taking in `entries` from nothing, in the order of the log. So they
/// are nearly in display order, which makes them quick to sort.
fn living_adds(entries: &[Numbered]) -> Vec<Shown> {
    let mut adds: Vec<Option<Shown>> = Vec::with_capacity(entries.len());
    let mut places: FxHashMap<ItemId, usize> = FxHashMap::with_capacity_and_hasher(entries.len(), FxBuildHasher);
    let mut by_author: FxHashMap<UserNo, Vec<ItemId>> = FxHashMap::default();
    let forgets = entries.iter().any(|n| n.entry.op == Op::Forget);
    for Numbered { seq, entry } in entries {
        let forgotten;
        let gone = match entry.op {
            Op::Add => {
                let direct = entry.is_direct();
                if let Some(earlier) = places.insert(entry.key.item, adds.len()) {
                    adds[earlier] = None;
                }
                adds.push(Some(Shown { seq: *seq, author: entry.author, key: entry.key, direct }));
                if forgets && !direct {
                    by_author.entry(entry.author).or_default().push(entry.key.item);
                }
                &[]
            }
            Op::Update => &[],
            Op::Delete => std::slice::from_ref(&entry.key.item),
            Op::Forget => {
                forgotten = by_author.remove(&entry.author).unwrap_or_default();
                &forgotten[..]
            }
        };
        for place in gone.iter().filter_map(|item| places.remove(item)) {
            adds[place] = None;
        }
    }
    adds.into_iter().flatten().collect()
}
