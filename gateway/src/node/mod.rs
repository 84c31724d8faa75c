//! This node: the users who are online here, its lease in the session pool, and the work it does besides serving.
//!
//! [`Node`] only holds the parts together. A module above takes the parts that it uses: [`Reads`] what readers read
//! from, [`LocalSessions`] the sessions, and so on. Only `serve` and [`background`], which run the node, get the whole
//! node.

pub(crate) mod background;
pub(crate) mod bounded;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod ghosts;
pub(crate) mod growth;
pub(crate) mod identity;
pub(crate) mod keeper;
pub(crate) mod lease;
pub(crate) mod metrics;
pub(crate) mod paced;
pub(crate) mod pool;
pub(crate) mod positions;
pub(crate) mod pull_news;
pub(crate) mod revocations;
pub(crate) mod slot;
pub(crate) mod touches;
pub(crate) mod uptime;
pub(crate) mod vitals;
pub(crate) mod watches;

use std::sync::Arc;

use axum::body::Bytes;
use compact_str::CompactString;
use feedgate_common::doorbell::{Closing, Heard, Listening, Onlooker};
use feedgate_common::error;
use feedgate_common::feed::{Changes, Feeds, Pages, Saw};
use feedgate_common::metrics::Counter;
use feedgate_common::trace;
use feedgate_common::{Doorbell, FeedId, InboxKey, Jobs, Position, Sessions, UserNo};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::limits::log_limit::LogLimit;
use crate::net::mailboxes::{Mailboxes, NotPut};
use crate::settings::{LiveSettings, Settings};
use bounded::bounded;
use ghosts::Ghosts;
use growth::RecentGrowth;
use lease::Lease;
use metrics::Metrics;
use pool::Pool;
use positions::Positions;
use pull_news::PullNews;
use revocations::Revocations;
use touches::Touches;
use uptime::Uptime;
use vitals::Vitals;
use watches::Watches;

/// How many reads of the store run at a time, even if many devices return in one second.
const READS_MAX: usize = 256;

/// The log lines about nodes that could not be told to close a connection.
static UNTOLD: LogLimit = LogLimit::new();

/// The stores that a node works with.
pub(crate) struct Stores {
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) doorbell: Arc<dyn Doorbell>,
    pub(crate) jobs: Arc<dyn Jobs>,
}

/// This node: its parts, which the tasks that serve peers share.
pub(crate) struct Node {
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) reads: Arc<Reads>,
    pub(crate) local: Arc<LocalSessions>,
    pub(crate) jobs: Arc<dyn Jobs>,
    /// What is counted for operators.
    pub(crate) metrics: Arc<Metrics>,
    /// Authors with news that their followers pull.
    pub(crate) hot: Arc<PullNews>,
    /// Which tokens are revoked.
    pub(crate) revocations: Arc<Revocations>,
    /// The items that devices of this node watch.
    pub(crate) watches: Arc<Watches>,
    /// Whether this node's sessions count.
    pub(crate) lease: Arc<Lease>,
    /// What `/readyz` and `/healthz` answer from.
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) uptime: Uptime,
    /// Held by the call of `background::run` that does the work.
    background: Mutex<()>,
    /// Cancelled when the first renewal, the first probe and the first look at pull records are done.
    pub(crate) begun: CancellationToken,
    _listening: Listening,
}

impl Node {
    /// Makes a node with this name. From now on wakes reach its sessions.
    pub(crate) fn new(name: String, stores: Stores, settings: Settings) -> Arc<Self> {
        let Stores { feeds, sessions, doorbell, jobs } = stores;
        let (archive, uptime) = (feeds.archive().clone(), Uptime::begin());
        let growth = RecentGrowth::new(settings.inline_changes);
        let pool = Pool::new(settings.connections as usize, settings.connections_per_user as usize, growth);
        let reads = Arc::new(Reads::new(feeds, doorbell.clone()));
        let local = Arc::new(LocalSessions::new(name, sessions, doorbell.clone(), pool));
        let hot = Arc::new(PullNews::new(archive.clone()));
        let revocations = Arc::new(Revocations::new(archive));
        let metrics = Arc::new(Metrics::default());
        let watches = Arc::new(Watches::new(uptime));
        let ear = Ear {
            missed: metrics.missed.clone(),
            reads: reads.clone(),
            local: local.clone(),
            hot: hot.clone(),
            revocations: revocations.clone(),
            watches: watches.clone(),
        };
        let listening = doorbell.listen(Arc::new(move |heard| ear.hear(heard)));
        Arc::new(Self {
            settings: LiveSettings::new(settings),
            reads,
            local,
            jobs,
            metrics,
            hot,
            revocations,
            watches,
            lease: Arc::new(Lease::new(uptime)),
            vitals: Arc::new(Vitals::new()),
            uptime,
            background: Mutex::new(()),
            begun: CancellationToken::new(),
            _listening: listening,
        })
    }

    /// Sets the limits and times from now on, also for sessions that are open.
    pub(crate) fn replace_settings(&self, settings: Settings) {
        self.local.pool.allow_per_user(settings.connections_per_user as usize);
        self.settings.replace(settings);
    }
}

/// Reads of all feeds, by WebSocket and by HTTP.
pub(crate) struct Reads {
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) pages: Pages,
    /// Inboxes that are read, for the store to keep them.
    pub(crate) touches: Touches,
    permits: Arc<Semaphore>,
    doorbell: Arc<dyn Doorbell>,
}

impl Reads {
    pub(super) fn new(feeds: Arc<Feeds>, doorbell: Arc<dyn Doorbell>) -> Self {
        let changes = Arc::new(Changes::new(feeds.clone()));
        let (pages, permits) = (Pages::new(changes.clone()), Arc::new(Semaphore::new(READS_MAX)));
        Self { feeds, changes, pages, touches: Touches::default(), permits, doorbell }
    }

    /// Waits until another read of the stores may begin; the read lasts until the permit is dropped. Cancel safe.
    pub(crate) async fn permit(&self) -> OwnedSemaphorePermit {
        self.permits.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// The name of the feed's channel. The feed must be one that the protocol knows.
    pub(crate) fn channel(&self, feed: FeedId) -> CompactString {
        let named = self.feeds.named();
        named.name(feed).expect("no feed that was configured ever goes while the process lives").into()
    }

    /// Notes that the reader has seen the feed up to `at`, as a connection of a node, `of`, or a request by HTTP has
    /// said. Tells the reader's other devices, if that is more than before. May be dropped at any time; then the
    /// position may be stored and not told.
    pub(crate) async fn see(&self, key: InboxKey, at: Position, of: Option<(&str, u64)>) -> error::Result<Saw> {
        let saw = self.pages.see(key, at).await?;
        if matches!(saw, Saw::More(_)) {
            let (node, connection) = of.unwrap_or_default();
            self.doorbell.seen(Onlooker { key, node, connection }).await;
        }
        Ok(saw)
    }
}

/// The sessions of this node, in memory and in the session pool of all nodes.
pub(crate) struct LocalSessions {
    /// The node's name in the session pool.
    pub(crate) node: String,
    /// The session pool of all nodes.
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) doorbell: Arc<dyn Doorbell>,
    /// The sessions on this node.
    pub(crate) pool: Pool,
    /// What devices send to sessions on this node by requests of their own.
    pub(crate) mailboxes: Arc<Mailboxes>,
    /// Acknowledged positions that are not stored yet.
    pub(crate) positions: Positions,
    /// The users for whom the session pool may hold sessions that this node does not have.
    pub(crate) ghosts: Ghosts,
}

impl LocalSessions {
    pub(super) fn new(node: String, sessions: Arc<dyn Sessions>, doorbell: Arc<dyn Doorbell>, pool: Pool) -> Self {
        let (mailboxes, positions, ghosts) = (Arc::default(), Positions::default(), Ghosts::default());
        Self { node, sessions, doorbell, pool, mailboxes, positions, ghosts }
    }

    /// Ends a session on whichever node it is. Another node may miss the message; it then ends the session when it
    /// confirms its sessions. If the message could not be sent, every node is asked to confirm the sessions of the
    /// user, for half a minute.
    pub(crate) async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) {
        if node == self.node {
            return self.pool.end(user, connection, why);
        }
        let call = async { Ok(self.doorbell.close(node, user, connection, why).await) };
        if matches!(bounded(call).await, Ok(true)) {
            return;
        }
        self.ghosts.note(user);
        if let Some(suppressed) = UNTOLD.admit() {
            tracing::warn!(suppressed, node, "another node could not be told to close a connection; it is asked again");
        }
    }

    /// Passes a device's message to the session of `node` that has this number. On another node the message may be
    /// lost, or be too much for the session, and this call still succeeds; the device then gets no reply.
    pub(crate) async fn pass(&self, node: &str, session: u128, message: Bytes) -> Result<(), NotPut> {
        if node == self.node {
            return self.mailboxes.put(session, message);
        }
        self.doorbell.pass(node, session, &message).await;
        Ok(())
    }
}

/// Takes the messages of the doorbell to the parts of the node that need them.
struct Ear {
    /// How often wakes may have been lost.
    missed: Counter,
    reads: Arc<Reads>,
    local: Arc<LocalSessions>,
    hot: Arc<PullNews>,
    revocations: Arc<Revocations>,
    watches: Arc<Watches>,
}

impl Ear {
    /// Handles a message of the doorbell. Never blocks.
    fn hear(&self, heard: Heard<'_>) {
        let LocalSessions { node: own, pool, mailboxes, .. } = &*self.local;
        match heard {
            Heard::Growth(growth) => {
                // The step is noted before a session is woken, since that session would ask for the step.
                trace::woken(&growth.traced, growth.inboxes.iter().map(|grown| grown.key.reader));
                pool.grown(growth);
            }
            Heard::Hot(head) => {
                self.reads.changes.heard_pull(head.pull_seq);
                self.hot.hear(head);
            }
            Heard::Missed => {
                self.missed.inc();
                self.hot.missed();
                self.revocations.hear();
                self.watches.missed();
                pool.missed();
            }
            Heard::Stirred(stir) => self.watches.hear(stir),
            Heard::Seen(Onlooker { key, node, connection }) => pool.seen(key, (node == own).then_some(connection)),
            Heard::Close { user, connection, why } => pool.end(user, connection, why),
            Heard::Confirm(users) => {
                self.revocations.hear();
                pool.doubt(users);
            }
            Heard::Message { session, message } => {
                // The device sends again what it gets no reply to.
                let _ = mailboxes.put(session, Bytes::copy_from_slice(message));
            }
        }
    }
}
