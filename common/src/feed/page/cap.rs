//! Where a feed ends that shows only so many of its newest adds. No IO: it says what to read.
//!
//! ```text
//!   what lives in the log above its floor ─▶ enough? ─▶ the end
//!                                              └─ no ─▶ the rest from below the floor ─▶ the end, if there are so many
//! ```

use super::descent::above_floor;
use super::window::{Reading, just_above};
use crate::DisplayKey;
use crate::archive::FeedAdd;
use crate::inboxes::Log;

/// See the module.
pub(super) struct Cap {
    most: usize,
    /// Newest first.
    newest: Vec<DisplayKey>,
    floor: Option<DisplayKey>,
}

impl Cap {
    /// Of a feed with this log, which shows at most `most` adds, at least 1.
    pub(super) fn new(log: &Log, most: usize) -> Self {
        let mut newest = above_floor(log);
        newest.sort_unstable_by(|a, b| b.cmp(a));
        Self { most, newest, floor: log.floor }
    }

    /// What has to be [told](Self::told) before the end is known, if anything.
    pub(super) fn missing(&self) -> Option<Reading> {
        let limit = self.most.checked_sub(self.newest.len()).filter(|room| *room > 0)?;
        Some(Reading { before: just_above(self.floor?), least_rank: None, limit })
    }

    /// The answer to what was missing, newest first.
    pub(super) fn told(&mut self, adds: &[FeedAdd]) {
        self.newest.extend(adds.iter().map(|add| add.key));
    }

    /// The last add that is shown; `None` if the feed ends by itself.
    pub(super) fn end(&self) -> Option<DisplayKey> {
        self.newest.get(self.most - 1).copied()
    }
}
