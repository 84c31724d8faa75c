//! The way of one page down a feed: through the log to its floor, then through a window. No IO: it says what to read.
//!
//! ```text
//!   cursor ─▶ what lives in the log above its floor ─▶ the window, from the floor or the cursor down ─▶ the end
//!                                                        └─ where it ends: read on
//! ```
//!
//! Invariant: the keys it gives descend strictly, and between the cursor and the last of them it leaves out none (I7).

use super::Shown;
use super::window::Window;
use crate::DisplayKey;
use crate::archive::{Below, FeedAdd};
use crate::inboxes::Log;

/// The next part of the way down through a feed.
pub(super) enum Leg {
    /// These, newest first; at least one.
    Keys(Vec<DisplayKey>),
    /// A read of the Archive, to be [told](Descent::told).
    Read(Below),
    /// Nothing: the feed ends here.
    End,
}

/// The way down through a feed: first what the log shows, then what the Archive has below its floor.
pub(super) struct Descent<'a> {
    log: &'a Log,
    /// What the log still has to give, oldest first.
    shown: Vec<DisplayKey>,
    /// Below the log: the greatest key that may come next; `None` if none may.
    at: Option<DisplayKey>,
    /// The last key that the feed shows, if it has such an end.
    end: Option<DisplayKey>,
    window: Option<Window>,
    most: usize,
}

impl<'a> Descent<'a> {
    /// From strictly below `before` down to `end`, if there is one, through what the log [shows](above_floor) first; a
    /// read of the Archive asks for `most` adds.
    pub(super) fn new(
        log: &'a Log,
        mut shown: Vec<DisplayKey>,
        before: Option<DisplayKey>,
        end: Option<DisplayKey>,
        most: usize,
    ) -> Self {
        let below = |key: &DisplayKey| before.is_none_or(|before| *key < before);
        shown.retain(|key| below(key) && is_within(end, key));
        let at = match (log.floor, before) {
            (Some(floor), Some(before)) => before.just_below().map(|below| below.min(floor)),
            (floor, _) => floor,
        };
        Self { log, shown, at, end, window: None, most }
    }

    /// At most `limit` keys, or what has to be read for them. `kept` gives the window of an earlier page, if there is
    /// one; it is asked when the log has given all it has.
    pub(super) fn next(&mut self, limit: usize, kept: impl FnOnce() -> Option<Window>) -> Leg {
        if !self.shown.is_empty() {
            let mut keys = self.shown.split_off(self.shown.len().saturating_sub(limit));
            keys.reverse();
            return Leg::Keys(keys);
        }
        let Some(at) = self.at.filter(|at| is_within(self.end, at)) else { return Leg::End };
        let (log, most) = (self.log, self.most);
        let window = self.window.get_or_insert_with(|| {
            let usable = |mut window: Window| (window.follow(log) && window.covers(at)).then_some(window);
            kept().and_then(usable).unwrap_or_else(|| Window::begin(log.head, at, most))
        });
        let mut keys = window.keys(at, limit);
        match keys.last() {
            Some(last) => {
                self.at = last.just_below();
                keys.retain(|key| is_within(self.end, key));
                if keys.is_empty() { Leg::End } else { Leg::Keys(keys) }
            }
            None => window.next().map_or(Leg::End, Leg::Read),
        }
    }

    /// The Archive's answer to a [`Leg::Read`].
    pub(super) fn told(&mut self, adds: &[FeedAdd]) {
        if let Some(window) = &mut self.window {
            window.grow(adds);
        }
    }

    /// The window it has come through, if it has come that far.
    pub(super) fn into_window(self) -> Option<Window> {
        self.window
    }
}

/// The keys of `adds`, which live in a log, above its floor; oldest first.
pub(super) fn above_floor(adds: &[Shown], floor: Option<DisplayKey>) -> Vec<DisplayKey> {
    let above = adds.iter().map(|add| add.key).filter(|key| floor.is_none_or(|floor| *key > floor));
    let mut shown: Vec<DisplayKey> = above.collect();
    shown.sort_unstable();
    shown
}

/// Whether a feed that ends at `end`, if it has such an end, shows this key.
pub(super) fn is_within(end: Option<DisplayKey>, key: &DisplayKey) -> bool {
    end.is_none_or(|end| *key >= end)
}
