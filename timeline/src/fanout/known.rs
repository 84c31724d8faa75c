//! The feeds that this node knows of.
//!
//! Invariant: others may have got a name since, so what is read to be finished is read with the list of all, or before
//! it. The inbox of a feed that is named later is built later too, from no less.

use feedgate_common::FeedId;
use parking_lot::Mutex;

/// Every feed of which this node has heard; at first the main one.
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

    /// Takes `all` as the feeds that are known from now on. Answers those that are not among `served`.
    pub(super) fn learn(&self, all: Vec<FeedId>, served: &[FeedId]) -> Vec<FeedId> {
        let left = all.iter().filter(|feed| !served.contains(feed)).copied().collect();
        *self.0.lock() = all;
        left
    }
}
