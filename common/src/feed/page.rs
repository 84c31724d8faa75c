//! A page in display order: from the log above its floor, from the Archive at or below it.
//!
//! ```text
//!   newest ──────────── floor ─────────────────▶ oldest
//!     adds that live in the log │ the follow door's rule over the outboxes
//! ```
//!
//! Invariants: strictly descending, no repeat, no gap (I7); a short page means the end (I8):
//! items deleted meanwhile are skipped without shortening it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Feeds;
use crate::error::Result;
use crate::inboxes::Numbered;
use crate::{DisplayKey, InboxKey, Item, ItemId, Op, Position, UserNo};

/// A stretch of a feed.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Newest first.
    pub items: Vec<Arc<Item>>,
    /// Where the next page begins (strictly below); `None` at the end.
    pub next: Option<DisplayKey>,
    /// The log's head, read before the page: changes after it come on top.
    pub position: Position,
}

impl Feeds {
    /// At most `limit` items strictly below `before`.
    pub async fn page(&self, key: InboxKey, before: Option<DisplayKey>, limit: usize) -> Result<Page> {
        let log = self.log(key).await?;
        let above = |k: &DisplayKey| log.floor.is_none_or(|floor| *k > floor);
        let below = |k: &DisplayKey| before.is_none_or(|before| *k < before);
        let mut keys: Vec<DisplayKey> = living(&log.entries).into_iter().filter(|k| above(k) && below(k)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));

        // One more than asked tells whether there is a next page.
        let wanted = limit + 1;
        let mut items = Vec::with_capacity(wanted);
        for chunk in keys.chunks(wanted) {
            self.take_living(chunk, wanted, &mut items).await?;
            if items.len() == wanted {
                break;
            }
        }
        if let Some(floor) = log.floor {
            let mut from = before.into_iter().chain(just_above(floor)).min();
            while items.len() < wanted {
                let adds = self.archive.feed_below(key.reader, from, None, self.backfill, wanted).await?;
                let keys: Vec<DisplayKey> = adds.iter().map(|add| add.key).collect();
                self.take_living(&keys, wanted, &mut items).await?;
                if keys.len() < wanted {
                    break;
                }
                from = keys.last().copied();
            }
        }
        let next = (items.len() > limit).then(|| items[limit - 1].key());
        items.truncate(limit);
        Ok(Page { items, next, position: log.head })
    }

    /// Appends the items behind `keys` that still live, up to `wanted` in all.
    async fn take_living(&self, keys: &[DisplayKey], wanted: usize, items: &mut Vec<Arc<Item>>) -> Result<()> {
        let ids: Vec<ItemId> = keys.iter().map(|k| k.item).collect();
        let room = wanted - items.len();
        items.extend(self.archive.items(&ids).await?.into_iter().flatten().take(room));
        Ok(())
    }
}

/// The least key above `key`, so that "strictly below it" includes `key`. `None` above the greatest
/// of all keys: no bound includes that one.
fn just_above(key: DisplayKey) -> Option<DisplayKey> {
    match key.item.0.checked_add(1) {
        Some(item) => Some(DisplayKey { rank: key.rank, item: ItemId(item) }),
        None => Some(DisplayKey { rank: key.rank.checked_add(1)?, item: ItemId(0) }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    fn log(changes: &[(Op, u32, u64)]) -> Vec<Numbered> {
        changes
            .iter()
            .zip(1..)
            .map(|(&(op, author, item), seq)| {
                let key = DisplayKey { rank: item as i64, item: ItemId(item) };
                Numbered { seq, entry: Entry { op, author: UserNo(author), outbox_seq: seq, generation: 1, key } }
            })
            .collect()
    }

    #[test]
    fn what_lives_is_what_was_added_and_neither_deleted_nor_forgotten_since() {
        use Op::{Add, Delete, Forget, Update};
        let entries = log(&[
            (Add, 1, 10),
            (Add, 2, 20),
            (Add, 1, 11),
            (Update, 1, 10),
            (Delete, 2, 20),
            (Forget, 1, 0),
            (Add, 1, 11),
            (Add, 3, 30),
        ]);
        let mut shown: Vec<u64> = living(&entries).iter().map(|k| k.item.0).collect();
        shown.sort_unstable();
        assert_eq!(shown, [11, 30]);
    }

    #[test]
    fn just_above_a_key_is_the_next_one() {
        let key = |rank, item| DisplayKey { rank, item: ItemId(item) };
        assert_eq!(just_above(key(5, 7)), Some(key(5, 8)));
        assert_eq!(just_above(key(5, u64::MAX)), Some(key(6, 0)));
        assert_eq!(just_above(key(i64::MAX, u64::MAX)), None, "not a key below it, which would lose it");
    }
}
