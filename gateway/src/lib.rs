//! Devices and backends talk to this crate: WebSocket sessions on one side, the HTTP API on the
//! other, on one port.
//!
//! ```text
//!   serve ──▶ api/         routes of the HTTP API (axum)
//!     │
//!     └────▶ upgrade ──▶ connection ──▶ session (pure) ──▶ Feeds
//!                            │
//!                            └── pool: who is online here; wakes find their sessions through it
//! ```
//!
//! The gateway holds no truth: it reads feeds, hands writes to the [`Publisher`] and keeps the
//! sessions. It does not know the timeline worker.

pub mod api;
pub mod auth;
pub mod clock;
mod page_json;
mod pool;
mod protocol;
mod serve;
pub mod settings;
mod surface;

use std::sync::Arc;

pub use auth::Keys;
pub use serve::serve;
pub use settings::Settings;
pub use surface::Surface;

use feedgate_common::doorbell::Listening;
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{Doorbell, Jobs, Sessions};
use tokio_util::task::TaskTracker;

use pool::Pool;

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
    /// Only counted, for the stats.
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
    /// Who is online here.
    pub(crate) pool: Arc<Pool>,
    /// Every task that serves a peer; a drain waits for them.
    pub(crate) tasks: TaskTracker,
    _listening: Listening,
}

impl Gateway {
    /// Composes the parts. From now on wakes reach this node's sessions.
    pub fn new(parts: Parts) -> Arc<Self> {
        let limits = &parts.settings;
        let pool = Arc::new(Pool::new(limits.connections as usize, limits.connections_per_user as usize));
        let sessions = pool.clone();
        let listening = parts.doorbell.listen(Arc::new(move |grown| sessions.wake(grown)));
        Arc::new(Self { parts, pool, tasks: TaskTracker::new(), _listening: listening })
    }
}

/// Every route but the WebSocket.
fn routes(gateway: &Arc<Gateway>) -> axum::Router {
    api::router(gateway.clone())
}
