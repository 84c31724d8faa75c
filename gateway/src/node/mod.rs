//! This node: the users who are online here, its lease in the session pool, and the work it does besides serving.

pub(crate) mod background;
pub(crate) mod bounded;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod ghosts;
pub(crate) mod growth;
pub(crate) mod identity;
pub(crate) mod keeper;
pub(crate) mod lease;
pub(crate) mod paced;
pub(crate) mod pool;
pub(crate) mod positions;
pub(crate) mod pull_news;
pub(crate) mod slot;
pub(crate) mod touches;
pub(crate) mod vitals;

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Outboxes, Status};
use feedgate_common::doorbell::{Closing, Heard, Listening};
use feedgate_common::feed::{Changes, Feeds, Pages};
use feedgate_common::{Doorbell, FeedId, Jobs, Sessions, UserNo};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::limits::log_limit::LogLimit;
use crate::settings::Settings;
use bounded::bounded;
use ghosts::Ghosts;
use growth::RecentGrowth;
use lease::Lease;
use pool::Pool;
use positions::Positions;
use pull_news::PullNews;
use touches::Touches;
use vitals::Vitals;

/// How many reads of the store run at once, also when many devices return in one second.
const READS_MAX: usize = 256;

/// The log lines about nodes that could not be told to close a connection.
static UNTOLD: LogLimit = LogLimit::new();

/// The stores that a node works with.
pub(crate) struct Stores {
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) outboxes: Arc<dyn Outboxes>,
    pub(crate) archive: Arc<dyn Status>,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) doorbell: Arc<dyn Doorbell>,
    pub(crate) jobs: Arc<dyn Jobs>,
}

/// This node: its stores and what it knows of its own sessions. All tasks that serve a peer share it.
pub(crate) struct Node {
    /// The node's name in the session pool.
    pub(crate) name: String,
    pub(crate) settings: Arc<Settings>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) pages: Pages,
    pub(crate) outboxes: Arc<dyn Outboxes>,
    pub(crate) archive: Arc<dyn Status>,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) doorbell: Arc<dyn Doorbell>,
    pub(crate) jobs: Arc<dyn Jobs>,
    /// The sessions on this node.
    pub(crate) pool: Arc<Pool>,
    /// Acknowledged positions that are not stored yet.
    pub(crate) positions: Positions,
    /// Inboxes that are read, for the store to keep them.
    pub(crate) touches: Touches,
    /// Sessions that the session pool may hold and this node has not.
    pub(crate) ghosts: Ghosts,
    /// Authors with news that their followers pull.
    pub(crate) hot: Arc<PullNews>,
    /// Whether this node's sessions count.
    pub(crate) lease: Lease,
    /// What `/readyz` and `/healthz` answer from.
    pub(crate) vitals: Vitals,
    /// Limits how many reads of the store run at once.
    reads: Arc<Semaphore>,
    /// Held by the call of `background::run` that does the work.
    pub(crate) background: Mutex<()>,
    /// Cancelled when the first renewal, the first probe and the first look at pull records are done.
    pub(crate) begun: CancellationToken,
    started: Instant,
    suspended_ms: fn() -> u64,
    _listening: Listening,
}

impl Node {
    /// Makes a node with this name. From now on wakes reach its sessions.
    pub(crate) fn new(name: String, stores: Stores, settings: Arc<Settings>) -> Arc<Self> {
        let Stores { feeds, outboxes, archive, sessions, doorbell, jobs } = stores;
        let growth = RecentGrowth::new(settings.inline_changes);
        let pool = Arc::new(Pool::new(settings.connections as usize, settings.connections_per_user as usize, growth));
        let hot = Arc::new(PullNews::default());
        let changes = Arc::new(Changes::new(feeds.clone()));
        let (heard_changes, heard_pool, heard_hot) = (changes.clone(), pool.clone(), hot.clone());
        let listening = doorbell.listen(Arc::new(move |heard| hear(heard, &heard_changes, &heard_pool, &heard_hot)));
        Arc::new(Self {
            name,
            settings,
            feeds,
            pages: Pages::new(changes.clone()),
            changes,
            outboxes,
            archive,
            sessions,
            doorbell,
            jobs,
            pool,
            positions: Positions::default(),
            touches: Touches::default(),
            ghosts: Ghosts::default(),
            hot,
            lease: Lease::new(),
            vitals: Vitals::new(),
            reads: Arc::new(Semaphore::new(READS_MAX)),
            background: Mutex::new(()),
            begun: CancellationToken::new(),
            started: Instant::now(),
            suspended_ms: clock::suspended_ms,
            _listening: listening,
        })
    }

    /// Ends a session on whichever node it is. Another node may not hear of it; it then ends the session when it
    /// confirms its sessions.
    pub(crate) async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) {
        if node == self.name {
            return self.pool.end(user, connection, why);
        }
        let call = async {
            self.doorbell.close(node, user, connection, why).await;
            Ok(())
        };
        if let Err(error) = bounded(call).await
            && let Some(suppressed) = UNTOLD.admit()
        {
            tracing::warn!(%error, suppressed, node, "another node could not be told to close a connection");
        }
    }

    /// The name of the feed's channel. The feed must be one that the protocol knows.
    pub(crate) fn channel(&self, feed: FeedId) -> &str {
        self.feeds.named().name(feed).expect("the protocol knows no channel but those that are configured")
    }

    /// Waits until another read of the stores may begin; the read lasts until the permit is dropped. Cancel safe.
    pub(crate) async fn read_permit(&self) -> OwnedSemaphorePermit {
        self.reads.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Whether this node's sessions count now: only then may anything be pushed to them.
    pub(crate) fn may_push(&self) -> bool {
        self.lease.stands(self.lease_ms())
    }

    /// Milliseconds since this node was made: the clock of deadlines.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Milliseconds on the clock of the lease: like that of the session pool, it goes on while the machine is
    /// suspended.
    pub(crate) fn lease_ms(&self) -> u64 {
        self.elapsed_ms() + (self.suspended_ms)()
    }

    /// The instant at which [`Node::elapsed_ms`] will be `ms`.
    pub(crate) fn at(&self, ms: u64) -> Instant {
        self.started + Duration::from_millis(ms)
    }
}

/// Handles a message of the doorbell. Never blocks.
fn hear(heard: Heard<'_>, changes: &Changes, pool: &Pool, hot: &PullNews) {
    match heard {
        Heard::Growth(growth) => pool.grown(growth),
        Heard::Hot(head) => {
            changes.heard_pull(head.pull_seq);
            hot.hear(head);
        }
        Heard::Missed => {
            hot.missed();
            pool.missed();
        }
        Heard::Close { user, connection, why } => pool.end(user, connection, why),
        Heard::Confirm(users) => pool.doubt(users),
    }
}
