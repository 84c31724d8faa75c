//! Fan-out: the steps that bring what was written into inboxes, as plain async code over the traits.
//!
//! ```text
//!   advance   one push step of (author, bucket), or of all buckets at once
//!   edge      one step of a reader's follows and unfollows
//!   direct    one step of what is addressed to a reader
//!   plan      the records of one push step, and their readers: pure
//! ```
//!
//! Invariants: each step compares what it has read, so it may be repeated, cut off, or run by two workers at once. An
//! event is answered as finished only when each inbox of its reader, or of its bucket, has taken in the change, or will
//! be built with the change.
//!
//! The fourth door, pull, belongs to the reads of a gateway: [`Changes`](feedgate_common::feed::Changes).

mod advance;
pub(crate) mod direct;
mod edge;
mod known;
mod plan;

use std::sync::Arc;

use feedgate_common::feed::Feeds;
use feedgate_common::inboxes::STEP_MAX;
use feedgate_common::search::TextFields;
use feedgate_common::{Archive, Inboxes};

pub use advance::{Left, Round, Step};
use known::KnownFeeds;
pub use plan::{StepSize, plan};

use crate::push::Noter;

/// From this number of followers on, an author is not advanced in rounds: as many as four steps take.
const ROUND_MAX: usize = 4 * STEP_MAX;

/// The steps of fan-out over the stores of some feeds. Nothing is lost if this state is lost.
pub struct FanOut {
    feeds: Arc<Feeds>,
    known: KnownFeeds,
    step: StepSize,
    /// An author with fewer followers than this is advanced in rounds of all buckets.
    round_max: usize,
    /// Entries that one take brings at most.
    take_max: usize,
    noter: Option<Noter>,
}

impl FanOut {
    /// Fan-out into the inboxes of `feeds`, by steps as large as the stores take them.
    pub fn new(feeds: Arc<Feeds>) -> Self {
        Self {
            feeds,
            known: KnownFeeds::default(),
            step: StepSize::default(),
            round_max: ROUND_MAX,
            take_max: STEP_MAX,
            noter: None,
        }
    }

    /// Bounds a push step to `step_max` recipients and as many appends, and a take to `step_max` entries; at least 1,
    /// at most [`STEP_MAX`]. Rounds are for authors with fewer followers than `step_max`.
    pub fn with_step_max(self, step_max: usize) -> Self {
        let most = step_max.clamp(1, STEP_MAX);
        Self { step: StepSize { recipients: most, appends: most }, round_max: most, take_max: most, ..self }
    }

    /// Advances an author with fewer than `round_max` followers in rounds of all buckets.
    pub fn with_round_max(self, round_max: usize) -> Self {
        Self { round_max, ..self }
    }

    /// Lets the steps note posts for readers who are away, for push notifications.
    pub fn with_noter(self, noter: Noter) -> Self {
        Self { noter: Some(noter), ..self }
    }

    pub(crate) fn archive(&self) -> &Arc<dyn Archive> {
        self.feeds.archive()
    }

    /// The fields by whose text items are searched; `None` if search is off.
    pub(crate) fn search(&self) -> Option<&TextFields> {
        self.feeds.search()
    }

    /// Whether an author's items stand in the author's own feed.
    pub(crate) fn own_posts(&self) -> bool {
        self.feeds.own_posts()
    }

    pub(crate) fn inboxes(&self) -> &Arc<dyn Inboxes> {
        self.feeds.inboxes()
    }
}
