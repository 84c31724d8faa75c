//! The gateway serves devices and backends: WebSocket sessions and the HTTP API, on one port.
//!
//! ```text
//!   serve          a port: accepts, answers HTTP, upgrades to WebSocket, drains
//!   api            the HTTP API         connection     one WebSocket: the task that carries between the rooms below
//!   node           this node: who is online, its lease, positions, news of authors who are pulled
//!   subscription   one subscription: rules only, pure
//!   protocol       words: what devices send and are sent         auth   credentials      settings   limits and times
//!   net            bytes: connections, addresses, frames
//!   limits         what a peer may do, and hold in memory        clock  the time of day
//! ```
//!
//! A room imports only from the rooms below it, and nothing from this file; `tests/tests/tidy.rs` reads the imports.
//! [`Gateway::new`] puts the rooms together, and gives each of the upper ones what it needs: `api::Api`,
//! `connection::Shared`, `serve::Ports`.
//!
//! The gateway holds no data of its own that must not be lost: it reads feeds, hands writes to the [`Publisher`] and
//! keeps the sessions. It does not know the timeline worker.
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`]. Here, begin with [`Gateway::new`], which joins the stores with the
//! rooms. Then read the module `subscription`: it has the rules of one subscription, without any IO. The module
//! `connection` carries out what a subscription decides. The stores behind the gateway come next:
//! [`feedgate_embedded`](../feedgate_embedded/index.html) is the simplest.

mod api;
pub mod auth;
pub mod clock;
mod connection;
mod limits;
mod net;
mod node;
mod protocol;
mod serve;
pub mod settings;
pub mod subscription;

use std::io;
use std::sync::Arc;

pub use auth::Keys;
pub use net::address::ClientAddress;
pub use net::arrivals::Arrivals;
pub use net::surface::Surface;
pub use protocol::Close;
pub use settings::Settings;

use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{Doorbell, Jobs, Sessions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use api::Api;
use api::access::Access;
use api::payload::Memory;
use api::writer::Writer;
use auth::verifier::Verifier;
use limits::budget::Budget;
use node::{Node, Stores};
use serve::Ports;

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

/// A gateway. Its clones are one gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Ports>);

impl Gateway {
    /// Makes a gateway from its parts. From now on wakes reach this node's sessions.
    pub fn new(parts: Parts) -> Self {
        let Parts { feeds, publisher, sessions, doorbell, jobs, keys, settings, node } = parts;
        let archive = feeds.archive().clone();
        let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        let verifier = Verifier::new(keys);
        let budget = Arc::new(Budget::new(settings.responses_max_bytes));
        let writer = Writer::new(publisher, feeds.clone(), jobs.clone(), tasks.clone());
        let stores = Stores { feeds, outboxes: archive.clone(), archive: archive.clone(), sessions, doorbell, jobs };
        let node = Node::new(node, stores, Arc::new(settings));
        let access = Access::new(node.clone(), verifier.clone(), budget.clone());
        let connections = connection::Shared::new(node.clone(), archive.clone(), verifier, budget);
        let api =
            Api { access, archive, node: node.clone(), memory: Memory::new(), stopping: stopping.clone(), writer };
        Self(Ports::new(node, api::router(api), connections, tasks, stopping))
    }

    /// The HTTP API without a port, as a router to be merged with other routes. It brings the fallback, so the other
    /// router must not have one.
    pub fn api(&self) -> axum::Router {
        self.0.api.clone()
    }
}

/// Serves `surface` until `shutdown` resolves, then drains. Dropping the future closes the port, without a drain. A
/// gateway may serve several ports at a time; all of them stop together.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    surface: Surface,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    gateway.0.serve(listener, surface, shutdown).await
}
