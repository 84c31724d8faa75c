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

mod advance;
mod edge;
mod hydrate;
mod limit;
mod news;
mod order;
mod page;
mod read;
mod rebuild;
mod write;

use std::sync::Arc;
use std::time::Duration;

use futures_util::lock::Mutex;

pub use advance::{Left, Round, Step, plan};
pub use hydrate::Change;
pub use limit::{FETCH, Limit, Stretch};
pub use order::oldest_first;
pub use page::{Page, living};
pub use write::{Publisher, jobs_of};

use crate::error::{Result, StoreError};
use crate::inboxes::{APPENDS_MAX, STEP_MAX};
use crate::jobs::Job;
use crate::named::NamedFeeds;
use crate::{Archive, FeedId, InboxKey, Inboxes, Item, Jobs, Millis, UserNo};
use news::Looked;
use page::Windows;

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
    known_feeds: parking_lot::Mutex<Vec<FeedId>>,
    retention: Option<Retention>,
    looked: Looked,
    windows: Windows,
    /// One rebuild of a reader at a time in this process; more would only do the same work.
    building: [Mutex<()>; 64],
}

impl Feeds {
    /// `backfill`: how many of an author's newest items a follow brings from before it.
    pub fn new(archive: Arc<dyn Archive>, inboxes: Arc<dyn Inboxes>, backfill: usize) -> Self {
        let building = std::array::from_fn(|_| Mutex::new(()));
        Self {
            archive,
            inboxes,
            jobs: None,
            backfill,
            step: StepSize::default(),
            named: NamedFeeds::default(),
            known_feeds: parking_lot::Mutex::new(vec![FeedId::MAIN]),
            retention: None,
            looked: Looked::default(),
            windows: Windows::default(),
            building,
        }
    }

    /// Lets an inbox that nobody reads for `unread` be dropped. `clock` gives the time.
    pub fn with_retention(self, unread: Duration, clock: Arc<dyn Fn() -> Millis + Send + Sync>) -> Self {
        Self { retention: Some(Retention { unread, clock }), ..self }
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
        match &self.retention {
            Some(_) => self.inboxes.touch(keys, self.kept_until()).await,
            None => Ok(()),
        }
    }

    /// Whether this feed shows an item now: not if it is too old for it.
    fn shown_in(&self, feed: FeedId) -> impl Fn(&Arc<Item>) -> bool + use<> {
        let expired = self.now().and_then(|now| self.named.expired_before(feed, now));
        move |item| expired.is_none_or(|then| item.published_at >= then)
    }

    /// The feeds that this node knows of. Others may have got a name since: what is read to be finished is read with
    /// the list of all, or before it. The inbox of a feed that is named later is built later too, from no less.
    fn known_feeds(&self) -> Vec<FeedId> {
        self.known_feeds.lock().clone()
    }

    /// The feeds of `all` that are not among `served`. All of them are known from now on.
    fn unserved(&self, all: Vec<FeedId>, served: &[FeedId]) -> Vec<FeedId> {
        let left = all.iter().filter(|feed| !served.contains(feed)).copied().collect();
        *self.known_feeds.lock() = all;
        left
    }

    /// The fan-out of these authors was reopened in the Archive. Best effort: it is outstanding there until it is done.
    async fn wake_workers(&self, authors: &[UserNo]) {
        let jobs: Vec<Job> = authors.iter().map(|author| Job::FanOut { author: *author }).collect();
        if let Some(queue) = &self.jobs
            && let Err(error) = queue.put(&jobs).await
        {
            tracing::debug!(%error, "reopened work could not be put on the queue; the sweep will");
        }
    }

    fn now(&self) -> Option<Millis> {
        self.retention.as_ref().map(|kept| (kept.clock)())
    }

    /// Until when an inbox that is read now is kept.
    fn kept_until(&self) -> Millis {
        self.retention.as_ref().map_or(Millis::MAX, |kept| {
            (kept.clock)().saturating_add(Millis::try_from(kept.unread.as_millis()).unwrap_or(Millis::MAX))
        })
    }

    fn build_lock(&self, key: InboxKey) -> &Mutex<()> {
        &self.building[key.reader.0 as usize % self.building.len()]
    }
}

/// How long inboxes are kept that nobody reads.
struct Retention {
    unread: Duration,
    clock: Arc<dyn Fn() -> Millis + Send + Sync>,
}

/// Work that others overtook [`TRIES`] times in a row.
fn contended(what: &str) -> StoreError {
    StoreError::unavailable(format_args!("{what} was overtaken {TRIES} times in a row"))
}
