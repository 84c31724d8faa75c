//! The gateway serves devices and backends: WebSocket sessions and the HTTP API, on one port.
//!
//! ```text
//!   serve          a port: accepts, answers HTTP, upgrades to WebSocket, drains
//!   api            the HTTP API         connection     one WebSocket: the task that carries between the rooms below
//!   console        a page in a browser, which uses both
//!   node           this node: who is online, its lease, positions, news of authors who are pulled
//!   subscription   one subscription: rules only, pure
//!   protocol       words: what devices send and are sent         auth   credentials      settings   limits and times
//!   net            bytes: connections, addresses, frames
//!   limits         what a peer may do, and hold in memory        clock  the time of day
//! ```
//!
//! A room imports only from the rooms below it, and nothing from this file; `tests/tests/tidy.rs` reads the imports.
//! [`Gateway::new`] puts the rooms together, and gives each of the upper ones what it needs: `api::ApiParts`,
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
mod around;
pub mod auth;
pub mod clock;
mod connection;
mod console;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod limits;
mod net;
mod node;
mod protocol;
mod serve;
pub mod settings;
pub mod subscription;

use std::io;
use std::sync::Arc;

pub use auth::{ApiKey, KeySet, Keys, Role, Roles};
pub use net::address::ClientAddress;
pub use net::arrivals::Arrivals;
pub use net::surface::Surface;
pub use net::tls::{Pem, Tls, TlsError};
pub use protocol::Close;
pub use settings::{Settings, Shown};

use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::intake;
use feedgate_common::metrics::Registry;
use feedgate_common::{Doorbell, Jobs, Sessions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use api::ApiParts;
use api::access::Access;
use api::backup::Copying;
use api::events::Streams;
use api::inside::Messages;
use api::payload::{DeviceMemory, Memory};
use api::writer::Writer;
use auth::Verifier;
use auth::console::Console;
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
    /// What `GET /v1/settings` tells of the settings of the process.
    pub shown: Arc<dyn Fn() -> Vec<Shown> + Send + Sync>,
    /// This node's name in the session pool.
    pub node: String,
    /// What other parts of the process count for operators; see [`feedgate_common::metrics`].
    pub registry: Registry,
}

/// A gateway. Its clones are one gateway.
#[derive(Clone)]
pub struct Gateway {
    ports: Arc<Ports>,
    console: Arc<Console>,
    verifier: Arc<Verifier>,
    access: Arc<Access>,
}

impl Gateway {
    /// Makes a gateway from its parts. From now on wakes reach this node's sessions.
    pub fn new(parts: Parts) -> Self {
        let Parts { feeds, publisher, sessions, doorbell, jobs, keys, settings, shown, node, mut registry } = parts;
        let archive = feeds.archive().clone();
        let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        let verifier = Verifier::new(keys);
        let budget = Arc::new(Budget::new(settings.responses_max_bytes));
        let metrics = Arc::new(api::metrics::Metrics::default());
        let node = Node::new(node, Stores { feeds, sessions, doorbell, jobs: jobs.clone() }, settings);
        let watches = node.watches.clone();
        let writer = Writer::new(publisher, node.reads.feeds.clone(), jobs, tasks.clone(), metrics.clone(), watches);
        node::metrics::register(&node, &mut registry);
        metrics.register(&mut registry);
        let registry = Arc::new(registry);
        let console = Arc::new(Console::default());
        let access = Access::new(&node, verifier.clone(), console.clone(), budget.clone());
        let connections = connection::Shared::new(&node, archive.clone(), verifier.clone(), budget);
        let (memory, device_memory, of_api) = (Memory::new(), DeviceMemory::new(), node.clone());
        let stop = stopping.clone();
        let streams = Streams::new();
        let parts = ApiParts {
            access: access.clone(),
            archive,
            node: of_api,
            memory,
            device_memory,
            metrics,
            registry,
            stopping: stop,
            streams,
            copying: Copying::new(),
            shown,
            writer,
        };
        let ports = Ports::new(node, api::router(parts), connections, tasks, stopping);
        Self { ports, console, verifier, access }
    }

    /// From now on these limits, times and keys hold, while every session of a device goes on. `keys` replace all but
    /// those that a signer publishes. If an API key goes, all sessions of the console end: the key may have opened
    /// them. Settings that a gateway takes only when it is made must be unchanged; the program lists them with its
    /// other settings.
    ///
    /// # Errors
    /// All wrong settings, as [`Settings::problems`] says them; then nothing has changed.
    pub fn reload(&self, settings: Settings, keys: &Keys) -> Result<(), String> {
        let problems = settings.problems();
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        let proxies = settings.proxies()?;
        let is_one_withdrawn = !keys.keep_api_keys_of(&self.verifier.keys());
        self.verifier.replace(keys);
        if is_one_withdrawn {
            self.console.end_all();
        }
        self.access.allow(&settings);
        self.ports.replace_settings(settings, proxies);
        Ok(())
    }

    /// The HTTP API without a port, as a router to be merged with other routes. It brings the fallback, so the other
    /// router must not have one.
    pub fn api(&self) -> axum::Router {
        self.ports.api.clone()
    }

    /// What carries out calls that backends send as messages. It may do what the roles `publish` and `read` allow.
    pub fn messages(&self) -> Arc<dyn intake::Backend> {
        Arc::new(Messages::new(self.ports.api.clone()))
    }

    /// The verifier of readers' tokens. The task that fetches the keys of their signer hands these keys to the
    /// verifier.
    pub fn verifier(&self) -> Arc<Verifier> {
        self.verifier.clone()
    }

    /// Another process will go on with the ports. From now on each answer of the API ends its connection, and once the
    /// gateway is told to stop, nothing more is accepted: connections wait in the ports, which the caller keeps open.
    pub fn last_call(&self) {
        self.ports.last_call.cancel();
    }

    /// Makes a ticket for a link to the console: `http://HOST:PORT/#ticket=…`. It can be used once, within ten minutes.
    /// Fails if the system gives no random bytes.
    pub fn console_ticket(&self) -> io::Result<String> {
        Ok(self.console.ticket()?)
    }
}

/// Serves `surface`, by TLS if `tls` is there, until `shutdown` resolves, then drains. Dropping the future closes the
/// port, without a drain. A gateway may serve several ports at a time; all of them stop together.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    surface: Surface,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    gateway.ports.serve(listener, surface, tls, shutdown).await
}
