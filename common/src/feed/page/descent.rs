//! The way of one page down a feed: through the log to its floor, then through a window. No IO: a [`Leg`] says what to
//! read.
//!
//! ```text
//!   cursor ─▶ what lives in the log above its floor ─▶ the window, from the floor or the cursor down ─▶ the end
//!                                                        └─ where it ends: read on
//! ```
//!
//! Invariants:
//! - The keys that a descent gives descend strictly, and no key between the cursor and the last given key is left out
//!   (I7).
//! - No item comes twice. The Archive may know already that an item has moved below the floor, while the log still
//!   shows it above; or an item may move down between two reads of the Archive. It stands where it came first.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::Shown;
use super::window::Window;
use crate::archive::{Below, FeedAdd};
use crate::inboxes::Log;
use crate::{DisplayKey, ItemId};

/// The next part of the way down through a feed.
pub(super) enum Leg {
    /// These keys, newest first; at least one.
    Keys(Vec<DisplayKey>),
    /// A read of the Archive, to be [told](Descent::told).
    Read(Below),
    /// Nothing: the feed ends here.
    End,
}

/// The way down through a feed: first the items that the log shows, then the items below its floor, from the Archive.
pub(super) struct Descent<'a> {
    log: &'a Log,
    /// The items that the log shows above its floor, oldest first.
    shown: Vec<DisplayKey>,
    /// The part of `shown` that is still to be given; its newest come first.
    left: Range<usize>,
    /// Once something below the floor is asked for: the items of `shown`, and those that were given from below it.
    given: Option<FxHashSet<ItemId>>,
    /// Below the log: the greatest key that may come next; `None` if none may.
    at: Option<DisplayKey>,
    /// The last key that the feed shows, if it has such an end.
    end: Option<DisplayKey>,
    window: Option<Window>,
    most: usize,
}

impl<'a> Descent<'a> {
    /// A way from strictly below `before` down to `end`, if there is one, through the items that the log
    /// [shows](above_floor) first. A read of the Archive asks for `most` adds.
    pub(super) fn new(
        log: &'a Log,
        shown: Vec<DisplayKey>,
        before: Option<DisplayKey>,
        end: Option<DisplayKey>,
        most: usize,
    ) -> Self {
        let below = shown.partition_point(|key| before.is_none_or(|before| *key < before));
        let left = shown.partition_point(|key| !is_within(end, key)).min(below)..below;
        let at = match (log.floor, before) {
            (Some(floor), Some(before)) => before.just_below().map(|below| below.min(floor)),
            (floor, _) => floor,
        };
        Self { log, shown, left, given: None, at, end, window: None, most }
    }

    /// At most `limit` keys, or the read that they need. `kept` gives the window of an earlier page, if there is one;
    /// it is called when the log has no further keys.
    pub(super) fn next(&mut self, limit: usize, kept: impl FnOnce() -> Option<Window>) -> Leg {
        if !self.left.is_empty() {
            let from = self.left.end.saturating_sub(limit).max(self.left.start);
            let keys = self.shown[from..self.left.end].iter().rev().copied().collect();
            self.left.end = from;
            return Leg::Keys(keys);
        }
        let Some(at) = self.at.filter(|at| is_within(self.end, at)) else { return Leg::End };
        let (log, most) = (self.log, self.most);
        let window = self.window.get_or_insert_with(|| {
            let usable = |mut window: Window| (window.follow(log) && window.covers(at)).then_some(window);
            kept().and_then(usable).unwrap_or_else(|| Window::begin(log.head, at, most))
        });
        let shown = &self.shown;
        let given = self.given.get_or_insert_with(|| shown.iter().map(|key| key.item).collect());
        loop {
            let Some(at) = self.at else { return Leg::End };
            let mut keys = window.keys(at, limit);
            let Some(last) = keys.last() else { return window.next().map_or(Leg::End, Leg::Read) };
            self.at = last.just_below();
            let is_end = !is_within(self.end, last);
            keys.retain(|key| is_within(self.end, key) && given.insert(key.item));
            match keys.is_empty() {
                false => return Leg::Keys(keys),
                true if is_end => return Leg::End,
                true => {}
            }
        }
    }

    /// The Archive's answer to a [`Leg::Read`].
    pub(super) fn told(&mut self, adds: &[FeedAdd]) {
        if let Some(window) = &mut self.window {
            window.grow(adds);
        }
    }

    /// The window of the Archive's adds through which the descent has come; `None` if it has not come below the log.
    pub(super) fn into_window(self) -> Option<Window> {
        self.window
    }
}

/// The keys of `adds`, which live in a log, above its floor; oldest first.
pub(super) fn above_floor(adds: &[Shown], floor: Option<DisplayKey>) -> Vec<DisplayKey> {
    let above = adds.iter().map(|add| add.key).filter(|key| is_above(floor, key));
    let mut shown: Vec<DisplayKey> = above.collect();
    shown.sort_unstable();
    shown
}

/// Whether a log with this floor, if it has one, tells what stands at this key.
pub(in crate::feed) fn is_above(floor: Option<DisplayKey>, key: &DisplayKey) -> bool {
    floor.is_none_or(|floor| *key > floor)
}

/// Whether a feed that ends at `end`, if it has such an end, shows this key.
pub(super) fn is_within(end: Option<DisplayKey>, key: &DisplayKey) -> bool {
    end.is_none_or(|end| *key >= end)
}
