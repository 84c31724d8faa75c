//! The rules of the feed as plain async code over the traits.
//!
//! ```text
//!   write     accept, then relay the event as a job              (HTTP API)
//!   advance   one push step of (author, bucket)                  (timeline worker)
//!   edge      one step of a reader's follows and unfollows       (timeline worker)
//!   news      what readers pull, and what is addressed to them   (gateway, timeline worker)
//!   rebuild   a missing inbox from the Archive                   (first read)
//!   order     the adds of a rebuilt inbox, oldest first          (homes of the Archive)
//!   read      changes after a position                           (gateway)
//!   page      a stretch in display order                         (gateway)
//!   limit     how much one answer holds                          (gateway)
//!   hydrate   entries into changes with their items              (gateway)
//! ```
//!
//! What these rules keep in memory lies in parts, each with its own invariant: `KnownFeeds`, `Looked` (which pulled
//! records were looked at), `Windows` (of deep pages) and `Building` (locks of rebuilds). A process may lose all of it.
//! `Retention` is a setting with a clock.

mod advance;
mod edge;
mod hydrate;
mod known;
mod limit;
mod news;
mod order;
mod page;
mod read;
mod rebuild;
mod retention;
mod write;

use std::sync::Arc;
use std::time::Duration;

pub use advance::{Left, Round, Step, plan};
pub use hydrate::Change;
pub use limit::{FETCH, Limit, Stretch};
pub use order::oldest_first;
pub use page::{Page, living};
pub use write::{Publisher, jobs_of};

use crate::error::{Result, StoreError};
use crate::inboxes::{APPENDS_MAX, STEP_MAX};
use crate::named::NamedFeeds;
use crate::{Archive, InboxKey, Inboxes, Jobs, Millis};
use known::KnownFeeds;
use news::Looked;
use page::Windows;
use rebuild::Building;
use retention::Retention;

/// How often a rule tries again when others overtake it, before it gives the work back.
const TRIES: usize = 64;

/// What a follow brings from before it.
pub const DEFAULT_BACKFILL: usize = 100;

/// How much a step takes on at most.
#[derive(Debug, Clone, Copy)]
pub struct StepSize {
    /// Readers; one more than it has read of them is another step.
    pub recipients: usize,
    /// Records times readers, but for one record at least.
    pub appends: usize,
    /// Entries of what no push brings.
    pub news: usize,
}

impl Default for StepSize {
    fn default() -> Self {
        Self { recipients: STEP_MAX, appends: APPENDS_MAX, news: STEP_MAX }
    }
}

/// The feed of every reader, over the Archive and the inboxes.
pub struct Feeds {
    archive: Arc<dyn Archive>,
    inboxes: Arc<dyn Inboxes>,
    jobs: Option<Arc<dyn Jobs>>,
    backfill: usize,
    step: StepSize,
    named: NamedFeeds,
    known: KnownFeeds,
    retention: Retention,
    looked: Looked,
    windows: Windows,
    building: Building,
}

impl Feeds {
    /// `backfill`: how many of an author's newest items a follow brings from before it.
    pub fn new(archive: Arc<dyn Archive>, inboxes: Arc<dyn Inboxes>, backfill: usize) -> Self {
        Self {
            archive,
            inboxes,
            jobs: None,
            backfill,
            step: StepSize::default(),
            named: NamedFeeds::default(),
            known: KnownFeeds::default(),
            retention: Retention::default(),
            looked: Looked::default(),
            windows: Windows::default(),
            building: Building::default(),
        }
    }

    /// Lets an inbox that nobody reads for `unread` be dropped. `clock` gives the time.
    pub fn with_retention(self, unread: Duration, clock: Arc<dyn Fn() -> Millis + Send + Sync>) -> Self {
        Self { retention: Retention::new(unread, clock), ..self }
    }

    /// Gives these feeds a queue on which they put at once the fan-out that a rebuild has reopened. Without it,
    /// or while the queue is away, the next sweep finds that work.
    pub fn with_jobs(self, jobs: Arc<dyn Jobs>) -> Self {
        Self { jobs: Some(jobs), ..self }
    }

    /// Gives these feeds the settings of the named ones. Without a [clock](Self::with_retention) nothing is too old for
    /// one.
    pub fn with_named(self, named: NamedFeeds) -> Self {
        Self { named, ..self }
    }

    /// Bounds a push step to `step_max` recipients and as many appends, and a take to `step_max` entries; at least 1,
    /// at most [`STEP_MAX`].
    pub fn with_step_max(self, step_max: usize) -> Self {
        let most = step_max.clamp(1, STEP_MAX);
        Self { step: StepSize { recipients: most, appends: most, news: most }, ..self }
    }

    /// The feeds that have names.
    pub fn named(&self) -> &NamedFeeds {
        &self.named
    }

    /// The truth behind the feeds.
    pub fn archive(&self) -> &Arc<dyn Archive> {
        &self.archive
    }

    /// The change logs of all readers.
    pub fn inboxes(&self) -> &Arc<dyn Inboxes> {
        &self.inboxes
    }

    /// Somebody reads these inboxes: they are kept for the whole time again.
    ///
    /// # Errors
    /// Those of the store; then they may be dropped early, which costs a rebuild.
    pub async fn touch(&self, keys: &[InboxKey]) -> Result<()> {
        match self.retention.kept_until() {
            Some(until) => self.inboxes.touch(keys, until).await,
            None => Ok(()),
        }
    }
}

/// Work that others overtook [`TRIES`] times in a row.
fn contended(what: &str) -> StoreError {
    StoreError::unavailable(format_args!("{what} was overtaken {TRIES} times in a row"))
}
