//! The rules of the feed as plain async code over the traits, each where its callers find no more than they need.
//!
//! ```text
//!   Publisher   write     accept, then relay the event as a job          HTTP API
//!               audience  who is in the audience of a new item
//!   Feeds       rebuild   a missing inbox from the Archive               gateway, timeline worker
//!   Changes     changes   the log: after a position, its head, whole     gateway
//!               news      what readers pull, taken in before a read
//!               hydrate   entries into changes with their items
//!               cursor    where a page begins, as text
//!               compare   inboxes with the Archive                  an operator
//!   Pages       page      a stretch in display order                     gateway
//!               people    who stands beside the items of a page
//!               sight     what is seen, and how much is unread           gateway
//!   find_items  search    a page of a search                             gateway
//!   profile     profile   a page of what an author has published         gateway
//!   Limit       limit     how much one answer holds                      gateway
//!               order     the log of a rebuilt inbox                     homes of the Archive
//!               mentioned whom comments mention                        homes of the Archive
//!   Eraser      erase     the erasure of a user, step by step            timeline worker
//! ```
//!
//! The rules that carry a record into inboxes (push, follow, direct items) are the worker's: module `fanout` of
//! [`feedgate_timeline`](../../feedgate_timeline/index.html).
//!
//! All of them share [`Feeds`]: the stores and the settings. The memory of a rule lies with that rule:
//! `Building` (locks of rebuilds) in `Feeds`, `Looked` (which pulled records were looked at) in [`Changes`], `Windows`
//! (of deep pages) in [`Pages`]. A process may lose all this memory.

mod audience;
mod changes;
mod compare;
pub(crate) mod cursor;
mod erase;
mod hydrate;
mod limit;
mod mentioned;
mod news;
mod order;
mod page;
mod people;
mod profile;
mod rebuild;
mod retention;
mod search;
mod write;

use std::sync::Arc;
use std::time::Duration;

pub use audience::resolve_audience;
pub use changes::Changes;
pub use cursor::{cursor_text, parse_cursor, parse_profile_cursor, profile_cursor_text};
pub use erase::{Eraser, traces};
pub use hydrate::{Change, Floor, Rest};
pub use limit::{FETCH, Limit, Stretch};
pub use mentioned::{Mentioned, mentioned_by};
pub use news::TakenIn;
pub use order::first_log;
pub use page::{Page, Pages, Saw, Sight, living};
pub use people::{Cards, cards_of, people_of};
pub use profile::{ItemsOf, pinned, profile};
pub use search::{FoundItems, Seeing, find_items};
pub use write::{Publisher, jobs_of};

use arc_swap::ArcSwap;

use crate::around::{Onlooker, Viewer, Visible};
use crate::error::{Result, StoreError};
use crate::named::NamedFeeds;
use crate::search::TextFields;
use crate::{Archive, InboxKey, Inboxes, Jobs, Millis};
use rebuild::Building;
use retention::Retention;

/// How often a rule tries again when others overtake it, before it gives the work back.
pub const TRIES: usize = 64;

/// How many items from before the follow a follow brings, unless configured otherwise.
pub const DEFAULT_BACKFILL: usize = 100;

/// The stores of all feeds, and their settings. Every inbox that a rule finds missing is built here.
///
/// One process has one `Feeds`, which lets each inbox be built by one task at a time.
pub struct Feeds {
    archive: Arc<dyn Archive>,
    inboxes: Arc<dyn Inboxes>,
    jobs: Option<Arc<dyn Jobs>>,
    backfill: usize,
    search: Option<TextFields>,
    own_posts: bool,
    given: ArcSwap<Given>,
    retention: Retention,
    building: Building,
}

/// The settings that may change while the feeds are in use.
#[derive(Default)]
struct Given {
    named: Arc<NamedFeeds>,
    visible: Visible,
}

impl Feeds {
    /// `backfill`: how many of an author's newest items a follow brings from before it.
    pub fn new(archive: Arc<dyn Archive>, inboxes: Arc<dyn Inboxes>, backfill: usize) -> Self {
        Self {
            archive,
            inboxes,
            jobs: None,
            backfill,
            search: None,
            own_posts: false,
            given: ArcSwap::default(),
            retention: Retention::default(),
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

    /// Gives these feeds the settings of the named feeds. Without a [clock](Self::with_retention) no item is too old
    /// for a named feed.
    pub fn with_named(self, named: NamedFeeds) -> Self {
        self.hold(named, self.visible());
        self
    }

    /// Lets items be searched by the text of these fields; `None` turns search off.
    pub fn with_search(self, search: Option<TextFields>) -> Self {
        Self { search, ..self }
    }

    /// Says whether an author's items stand in the author's own feed.
    pub fn with_own_posts(self, own_posts: bool) -> Self {
        Self { own_posts, ..self }
    }

    /// Says whose comments and reactions users see.
    pub fn with_visible(self, visible: Visible) -> Self {
        self.given.store(Arc::new(Given { named: self.named(), visible }));
        self
    }

    /// Replaces the named feeds, and the setting that says whose comments and reactions users see. A call that has
    /// begun ends by the old settings or by the new ones. A feed that was configured before must be among `named`,
    /// since devices may hold it.
    pub fn hold(&self, named: NamedFeeds, visible: Visible) {
        self.given.store(Arc::new(Given { named: Arc::new(named), visible }));
    }

    /// Whose comments users see.
    pub fn visible(&self) -> Visible {
        self.given.load().visible
    }

    /// Somebody who looks at items and comments as `viewer`.
    pub fn onlooker(&self, viewer: Viewer) -> Onlooker {
        Onlooker { viewer, visible: self.visible() }
    }

    /// The fields by whose text items are searched; `None` if search is off.
    pub fn search(&self) -> Option<&TextFields> {
        self.search.as_ref()
    }

    /// Whether an author's items stand in the author's own feed.
    pub fn own_posts(&self) -> bool {
        self.own_posts
    }

    /// The feeds that have names now.
    pub fn named(&self) -> Arc<NamedFeeds> {
        self.given.load().named.clone()
    }

    /// The truth behind the feeds.
    pub fn archive(&self) -> &Arc<dyn Archive> {
        &self.archive
    }

    /// The change logs of all readers.
    pub fn inboxes(&self) -> &Arc<dyn Inboxes> {
        &self.inboxes
    }

    /// How many of an author's newest items a follow brings from before it.
    pub fn backfill(&self) -> usize {
        self.backfill
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

/// The error of work that others overtook [`TRIES`] times in a row.
pub fn contended(what: &str) -> StoreError {
    StoreError::unavailable(format_args!("{what} was overtaken {TRIES} times in a row"))
}
