//! Devices and backends talk to this crate: WebSocket sessions on one side, the HTTP API on the
//! other, on one port.
//!
//! ```text
//!   serve          a port: accepts, answers HTTP, upgrades to WebSocket, drains
//!   api            the HTTP API         connection     one WebSocket: the task that carries between the rooms below
//!   node           this node: who is online, its lease, positions, news of authors who are pulled
//!   session        one subscription: rules only, pure
//!   protocol       words: what devices say and are told
//!   net            bytes: connections, addresses, frames
//!   limits         what a peer may do, and hold in memory
//! ```
//!
//! The gateway holds no truth: it reads feeds, hands writes to the [`Publisher`] and keeps the
//! sessions. It does not know the timeline worker.

pub mod api;
pub mod auth;
pub mod clock;
mod connection;
mod limits;
mod net;
mod node;
mod protocol;
mod serve;
pub mod session;
pub mod settings;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

pub use auth::Keys;
pub use net::address::ClientAddress;
pub use net::arrivals::Arrivals;
pub use net::surface::Surface;
pub use protocol::Close;
pub use serve::serve;
pub use settings::Settings;

use feedgate_common::doorbell::{Closing, Heard, Listening};
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{Doorbell, FeedId, Jobs, Sessions, UserId, UserNo};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use api::relay::Relay;
use auth::{Claims, TokenError};
use connection::bodies::Bodies;
use connection::reading::READS_MAX;
use limits::budget::Budget;
use limits::quotas::Quotas;
use net::address::shares::Shares;
use net::address::{AddressKey, Client, Proxies};
use net::refusals::Refusals;
use node::bounded::bounded;
use node::ghosts::Ghosts;
use node::growth::Told;
use node::lease::Lease;
use node::pool::Pool;
use node::positions::Positions;
use node::pull_news::Hot;
use node::touches::Touches;
use node::vitals::Vitals;

/// What a gateway is made of; every part is an argument, so that a test or another binary can bring
/// its own.
pub struct Parts {
    /// Reads and pages of every feed.
    pub feeds: Arc<Feeds>,
    /// The door for writes.
    pub publisher: Arc<Publisher>,
    /// The session pool of all nodes.
    pub sessions: Arc<dyn Sessions>,
    /// Rings when inboxes have grown.
    pub doorbell: Arc<dyn Doorbell>,
    /// What the workers are told by; and counted, for the stats.
    pub jobs: Arc<dyn Jobs>,
    /// Who may come in.
    pub keys: Keys,
    /// Limits and times.
    pub settings: Settings,
    /// This node's name in the session pool.
    pub node: String,
}

/// A gateway, shared by every connection and request.
pub struct Gateway {
    pub(crate) parts: Parts,
    /// Whose address counts.
    pub(crate) proxies: Proxies,
    /// What each address holds.
    pub(crate) shares: Arc<Shares>,
    /// Who is online here.
    pub(crate) pool: Arc<Pool>,
    /// Every task that serves a peer; a drain waits for them.
    pub(crate) tasks: TaskTracker,
    /// Acknowledged positions on their way to the store.
    pub(crate) positions: Positions,
    /// Inboxes that are read, on their way to the store.
    pub(crate) touches: Touches,
    /// Sessions that may have been left in the pool.
    pub(crate) ghosts: Ghosts,
    /// Authors with news that their followers pull.
    pub(crate) hot: Arc<Hot>,
    /// Changes as JSON, encoded once for all readers.
    pub(crate) bodies: Bodies,
    /// Tells the workers of accepted writes.
    pub(crate) relay: Arc<Relay>,
    /// Bounds the reads of the store at once.
    pub(crate) reads: Semaphore,
    /// Bounds the bytes of answers in memory.
    pub(crate) budget: Budget,
    /// Bounds what each user reads by HTTP.
    pub(crate) users: Arc<Quotas<UserId>>,
    /// Bounds what is read by HTTP from each address.
    pub(crate) addresses: Arc<Quotas<AddressKey>>,
    /// Whether this node's sessions count.
    pub(crate) lease: Lease,
    /// Requests for a WebSocket that were refused, and tokens.
    pub(crate) refused_upgrades: Refusals,
    pub(crate) refused_tokens: Refusals,
    /// What `/readyz` and `/healthz` answer from.
    pub(crate) vitals: Vitals,
    /// Held by whoever runs the [background](node::background).
    pub(crate) background: Mutex<()>,
    /// Cancelled when the background has gone round once: the first connections find a lease.
    pub(crate) begun: CancellationToken,
    /// Cancelled when the drain begins.
    pub(crate) stopping: CancellationToken,
    /// Ports that are served.
    pub(crate) ports: AtomicUsize,
    started: Instant,
    suspended_ms: fn() -> u64,
    _listening: Listening,
}

impl Gateway {
    /// Composes the parts. From now on wakes reach this node's sessions.
    pub fn new(parts: Parts) -> Arc<Self> {
        let limits = &parts.settings;
        let shares = Shares::new(limits.shares());
        let proxies = limits.proxies().expect("the settings were checked");
        let told = Told::new(limits.inline_changes);
        let pool = Arc::new(Pool::new(limits.connections as usize, limits.connections_per_user as usize, told));
        let hot = Arc::new(Hot::default());
        let budget = Budget::new(limits.responses_max_bytes);
        let users = Quotas::new(limits.reads_per_user, limits.reads_per_user_per_sec);
        let addresses = Quotas::new(limits.reads_per_address, limits.reads_per_address_per_sec);
        let relay = Relay::new(parts.jobs.clone());
        let (feeds, sessions, news) = (parts.feeds.clone(), pool.clone(), hot.clone());
        let listening = parts.doorbell.listen(Arc::new(move |heard| hear(heard, &feeds, &sessions, &news)));
        Arc::new(Self {
            parts,
            proxies,
            shares,
            pool,
            tasks: TaskTracker::new(),
            positions: Positions::default(),
            touches: Touches::default(),
            ghosts: Ghosts::default(),
            hot,
            bodies: Bodies::new(),
            relay,
            reads: Semaphore::new(READS_MAX),
            budget,
            users,
            addresses,
            lease: Lease::new(),
            refused_upgrades: Refusals::default(),
            refused_tokens: Refusals::default(),
            vitals: Vitals::new(),
            background: Mutex::new(()),
            begun: CancellationToken::new(),
            stopping: CancellationToken::new(),
            ports: AtomicUsize::new(0),
            started: Instant::now(),
            suspended_ms: clock::suspended_ms,
            _listening: listening,
        })
    }

    /// Who the token says is there, now. That it was refused is logged, with the client that brought it.
    pub(crate) fn verify(&self, token: &str, client: Client) -> Result<Claims, TokenError> {
        let now = u64::try_from(clock::now() / 1000).unwrap_or(0);
        let verified = self.parts.keys.verify(token, now);
        verified.inspect_err(|error| self.refused_tokens.tell(self.elapsed_ms(), client, "a token", error.why()))
    }

    /// Ends a session wherever it is. On another node this may be lost, and is then made up for when that node
    /// confirms its sessions.
    pub(crate) async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) {
        if node == self.parts.node {
            return self.pool.end(user, connection, why);
        }
        let told = async {
            self.parts.doorbell.close(node, user, connection, why).await;
            Ok(())
        };
        if let Err(error) = bounded(told).await {
            tracing::warn!(%error, node, "another node could not be told to close a connection");
        }
    }

    /// What devices call the feed; for one that they could name.
    pub(crate) fn channel(&self, feed: FeedId) -> &str {
        self.parts.feeds.named().name(feed).expect("the protocol knows no channel but those that are configured")
    }

    /// Waits until the stores may be read.
    pub(crate) async fn turn(&self) -> SemaphorePermit<'_> {
        self.reads.acquire().await.expect("the semaphore is never closed")
    }

    /// Whether this node's sessions count now: only then may anything be pushed to them.
    pub(crate) fn may_push(&self) -> bool {
        self.lease.stands(self.lease_ms())
    }

    /// Milliseconds since this gateway was made: the clock of deadlines.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The clock of the lease: it goes on while the machine is suspended, as that of the session pool does.
    pub(crate) fn lease_ms(&self) -> u64 {
        self.elapsed_ms() + (self.suspended_ms)()
    }

    /// The instant that [`Gateway::elapsed_ms`] will show as `ms`.
    pub(crate) fn at(&self, ms: u64) -> Instant {
        self.started + Duration::from_millis(ms)
    }
}

/// Does what the doorbell says. Quick, never blocks.
fn hear(heard: Heard<'_>, feeds: &Feeds, pool: &Pool, hot: &Hot) {
    match heard {
        Heard::Growth(growth) => pool.grown(growth),
        Heard::Hot(head) => {
            feeds.heard_pull(head.pull_seq);
            hot.hear(head);
        }
        Heard::Missed => {
            hot.missed();
            pool.missed();
        }
        Heard::Close { user, connection, why } => pool.end(user, connection, why),
    }
}

/// Every route but the WebSocket.
fn routes(gateway: &Arc<Gateway>) -> axum::Router {
    api::router(gateway.clone())
}
