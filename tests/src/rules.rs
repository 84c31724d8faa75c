//! All rules of the feed over the same stores, as a process has them that is a gateway and a worker.

use std::sync::Arc;

use feedgate_common::feed::{Changes, Feeds, Pages};
use feedgate_timeline::FanOut;

/// The rules of one process.
pub struct Rules {
    /// The stores, and what is set for the feeds.
    pub feeds: Arc<Feeds>,
    /// The logs, as devices read them.
    pub changes: Arc<Changes>,
    /// Puts pages together, and keeps their windows.
    pub pages: Pages,
    /// The steps of a worker.
    pub fan_out: FanOut,
}

impl Rules {
    /// Those over `feeds`, by steps as large as in the product.
    pub fn new(feeds: Arc<Feeds>) -> Self {
        Self::of(Changes::new(feeds.clone()), FanOut::new(feeds.clone()), feeds)
    }

    /// Those over `feeds`, by steps and takes of `step_max` at most.
    pub fn by_steps(feeds: Arc<Feeds>, step_max: usize) -> Self {
        let changes = Changes::new(feeds.clone()).with_take_max(step_max);
        Self::of(changes, FanOut::new(feeds.clone()).with_step_max(step_max), feeds)
    }

    fn of(changes: Changes, fan_out: FanOut, feeds: Arc<Feeds>) -> Self {
        let changes = Arc::new(changes);
        Self { pages: Pages::new(changes.clone()), feeds, changes, fan_out }
    }
}
