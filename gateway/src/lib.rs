//! The gateway serves devices and backends: WebSocket sessions and the HTTP API, on one port.
//!
//! ```text
//!   serve          a port: accepts, answers HTTP, upgrades to WebSocket, drains
//!   api            the HTTP API         connection     one WebSocket: the task that carries between the rooms below
//!   node           this node: who is online, its lease, positions, news of authors who are pulled
//!   session        one subscription: rules only, pure
//!   protocol       words: what devices send and are sent
//!   net            bytes: connections, addresses, frames
//!   limits         what a peer may do, and hold in memory
//! ```
//!
//! A room imports only from the rooms below it; `tests/tests/tidy.rs` reads the imports. `auth`, `clock` and
//! `settings` are no rooms. Only `api`, `connection` and `serve` know the whole [`Gateway`].
//!
//! The gateway holds no data of its own that must not be lost: it reads feeds, hands writes to the [`Publisher`] and
//! keeps the sessions. It does not know the timeline worker.
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`]. Here, begin with [`Gateway`], which joins the stores with the rooms.
//! Then read the module `session`: it has the rules of one subscription, without any IO. The module `connection` carries
//! out what a session decides. The stores behind the gateway come next:
//! [`feedgate_embedded`](../feedgate_embedded/index.html) is the simplest.

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

pub use auth::Keys;
pub use net::address::ClientAddress;
pub use net::arrivals::Arrivals;
pub use net::surface::Surface;
pub use protocol::Close;
pub use serve::serve;
pub use settings::Settings;

use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{Archive, Doorbell, Jobs, Sessions, UserId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use api::relay::Relay;
use auth::{Claims, TokenError};
use connection::bodies::Bodies;
use limits::budget::Budget;
use limits::quotas::Quotas;
use net::address::shares::Shares;
use net::address::{AddressKey, Client, Proxies};
use net::refusals::Refusals;
use node::{Node, Stores};

/// The parts that a gateway is made of; a test or another binary can bring its own.
pub struct Parts {
    /// Reads and pages of every feed.
    pub feeds: Arc<Feeds>,
    /// Accepts the writes of backends.
    pub publisher: Arc<Publisher>,
    /// The session pool of all nodes.
    pub sessions: Arc<dyn Sessions>,
    /// Tells this node when inboxes have grown.
    pub doorbell: Arc<dyn Doorbell>,
    /// The queue of the workers' jobs; also counted for the stats.
    pub jobs: Arc<dyn Jobs>,
    /// The secrets that credentials are checked with.
    pub keys: Keys,
    /// The limits and times of the gateway.
    pub settings: Settings,
    /// This node's name in the session pool.
    pub node: String,
}

/// A gateway, shared by every connection and request.
pub struct Gateway {
    /// This node, and its stores.
    pub(crate) node: Arc<Node>,
    /// The truth, as requests read it.
    pub(crate) archive: Arc<dyn Archive>,
    /// Accepts the writes of backends.
    pub(crate) publisher: Arc<Publisher>,
    /// The secrets that credentials are checked with.
    pub(crate) keys: Keys,
    /// The trusted proxies, which say for whom a connection counts.
    pub(crate) proxies: Proxies,
    /// The connections and upgrades that are counted for each address.
    pub(crate) shares: Arc<Shares>,
    /// Every task that serves a peer; a drain waits for them.
    pub(crate) tasks: TaskTracker,
    /// Changes as JSON, encoded once for all readers.
    pub(crate) bodies: Bodies,
    /// Tells the workers of accepted writes.
    pub(crate) relay: Arc<Relay>,
    /// Limits the bytes of answers in memory.
    pub(crate) budget: Budget,
    /// Limits what each user reads by HTTP.
    pub(crate) users: Arc<Quotas<UserId>>,
    /// Limits what is read by HTTP from each address.
    pub(crate) addresses: Arc<Quotas<AddressKey>>,
    /// Bounds the log lines about refused requests for a WebSocket.
    pub(crate) refused_upgrades: Refusals,
    /// Bounds the log lines about refused tokens.
    pub(crate) refused_tokens: Refusals,
    /// Cancelled when the drain begins.
    pub(crate) stopping: CancellationToken,
    /// How many ports are served.
    pub(crate) ports: AtomicUsize,
}

impl Gateway {
    /// Makes a gateway from its parts. From now on wakes reach this node's sessions.
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { feeds, publisher, sessions, doorbell, jobs, keys, settings, node } = parts;
        let limits = Arc::new(settings);
        let relay = Relay::new(jobs.clone());
        let archive = feeds.archive().clone();
        let stores = Stores { feeds, outboxes: archive.clone(), archive: archive.clone(), sessions, doorbell, jobs };
        let node = Node::new(node, stores, limits.clone());
        Arc::new(Self {
            node,
            archive,
            publisher,
            keys,
            proxies: limits.proxies().expect("the settings were checked"),
            shares: Shares::new(limits.shares()),
            tasks: TaskTracker::new(),
            bodies: Bodies::new(),
            relay,
            budget: Budget::new(limits.responses_max_bytes),
            users: Quotas::new(limits.reads_per_user, limits.reads_per_user_per_sec),
            addresses: Quotas::new(limits.reads_per_address, limits.reads_per_address_per_sec),
            refused_upgrades: Refusals::default(),
            refused_tokens: Refusals::default(),
            stopping: CancellationToken::new(),
            ports: AtomicUsize::new(0),
        })
    }

    /// Checks a token now, and gives its claims. A refusal is logged with the client that brought the token.
    pub(crate) fn verify(&self, token: &str, client: Client) -> Result<Claims, TokenError> {
        let now = u64::try_from(clock::now() / 1000).unwrap_or(0);
        let verified = self.keys.verify(token, now);
        verified.inspect_err(|error| self.refused_tokens.tell(self.node.elapsed_ms(), client, "a token", error.why()))
    }
}

/// Every route but that of the WebSocket.
fn routes(gateway: &Arc<Gateway>) -> axum::Router {
    api::router(gateway.clone())
}
