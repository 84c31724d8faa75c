//! How much one answer may hold: so many items, and so many bytes of their bodies.
//!
//! An answer takes items until it has as many as its limit says, or until their bodies have as many bytes. So the last
//! item may exceed the limit. Then the answer says where to go on. The first item is always taken, so every answer
//! makes progress.

use std::sync::Arc;

use crate::{DisplayKey, Item};

/// Items fetched at a time, so that large bodies are not fetched only to be left out. While an answer is put together
/// this many bodies may be in memory beyond those that it holds.
pub const FETCH: usize = 32;

/// The most that one answer holds. A number of items converts into a limit that any bytes are within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Items, at least 1.
    pub items: usize,
    /// Once the bodies in hand have this many bytes, no more is taken: the last item may exceed it.
    pub bytes: usize,
}

impl From<usize> for Limit {
    fn from(items: usize) -> Self {
        Self { items, bytes: usize::MAX }
    }
}

/// Items in display order, until the limit.
#[derive(Debug)]
pub struct Stretch {
    limit: Limit,
    items: Vec<Arc<Item>>,
    bytes: usize,
    cut: bool,
}

impl Stretch {
    /// A stretch without items.
    pub fn new(limit: Limit) -> Self {
        Self { limit, items: Vec::new(), bytes: 0, cut: false }
    }

    /// Takes items in order. Those that no longer fit are left out: then the stretch is [cut](Stretch::is_cut).
    pub fn extend(&mut self, items: impl IntoIterator<Item = Arc<Item>>) {
        for item in items {
            self.cut |= self.items.len() >= self.limit.items || self.bytes >= self.limit.bytes;
            if self.cut {
                return;
            }
            self.bytes += item.bytes();
            self.items.push(item);
        }
    }

    /// Whether an item has come that did not fit: nothing more is taken.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// How many items to fetch next: those that are still wanted and one more, which tells whether that was the end; at
    /// least a few, since some may be gone by now.
    pub fn wants(&self) -> usize {
        const FEW: usize = 8;
        (self.limit.items - self.items.len() + 1).clamp(FEW.min(self.limit.items + 1), FETCH)
    }

    /// The items, and where to go on (strictly below); `None` at the end.
    pub fn finish(self) -> (Vec<Arc<Item>>, Option<DisplayKey>) {
        let next = self.items.last().filter(|_| self.cut).map(|item| item.key());
        (self.items, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    fn item(id: u64, bytes: usize) -> Arc<Item> {
        let body = Body::parse(format!("\"{}\"", "x".repeat(bytes - 2))).unwrap();
        Arc::new(Item { body, ..Item::sample(id) })
    }

    /// How many of `count` items of 10 bytes come, and whether there is more.
    fn taken(count: u64, limit: Limit) -> (usize, bool) {
        let mut stretch = Stretch::new(limit);
        stretch.extend((0..count).map(|n| item(count - n, 10)));
        let (items, next) = stretch.finish();
        assert!(next.is_none_or(|next| next == items.last().unwrap().key()));
        (items.len(), next.is_some())
    }

    #[test]
    fn a_stretch_ends_at_so_many_items_or_bytes_and_only_then_has_a_next() {
        assert_eq!(taken(5, Limit { items: 5, bytes: 1000 }), (5, false));
        assert_eq!(taken(6, Limit { items: 5, bytes: 1000 }), (5, true));
        assert_eq!(taken(5, Limit { items: 9, bytes: 50 }), (5, false));
        assert_eq!(taken(5, Limit { items: 9, bytes: 40 }), (4, true));
        assert_eq!(taken(5, Limit { items: 9, bytes: 31 }), (4, true));
        assert_eq!(taken(5, Limit { items: 9, bytes: 1 }), (1, true), "one always fits");
        assert_eq!(taken(0, 5.into()), (0, false));
    }

    #[test]
    fn what_is_fetched_next_is_what_is_wanted_and_one_more_within_bounds() {
        let mut stretch = Stretch::new(20.into());
        assert_eq!(stretch.wants(), 21);
        stretch.extend((1..=18).rev().map(|id| item(id, 10)));
        assert_eq!(stretch.wants(), 8);
        assert_eq!((Stretch::new(100.into()).wants(), Stretch::new(1.into()).wants()), (FETCH, 2));
    }
}
