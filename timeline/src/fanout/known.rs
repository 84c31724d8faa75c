//! The feeds that this node knows of.
//!
//! Other feeds may get a name at any time. So a step reads the list of all feeds after its work on the feeds that it
//! knows, and finishes its event only if the list has no other feed. A feed that gets its name later needs nothing of
//! that step: its inbox is built later, and the build brings everything.

use feedgate_common::FeedId;
use parking_lot::Mutex;

/// Every feed that this node knows; at first only the main feed.
pub(super) struct KnownFeeds(Mutex<Vec<FeedId>>);

impl Default for KnownFeeds {
    fn default() -> Self {
        Self(Mutex::new(vec![FeedId::MAIN]))
    }
}

impl KnownFeeds {
    pub(super) fn all(&self) -> Vec<FeedId> {
        self.0.lock().clone()
    }

    /// Replaces the known feeds by `all`. Gives the feeds of `all` that are not among `served`.
    pub(super) fn learn(&self, all: Vec<FeedId>, served: &[FeedId]) -> Vec<FeedId> {
        let left = all.iter().filter(|feed| !served.contains(feed)).copied().collect();
        *self.0.lock() = all;
        left
    }
}
