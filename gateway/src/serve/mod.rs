//! Serves one port: accepts connections, and drains when told to stop.
//!
//! A shutdown goes in this order: `/readyz` and every new WebSocket get 503; every session is closed with 3001, spread
//! over `drain_ms` so that not all devices return at the same moment; positions are saved; the lease is given back.
//!
//! When another process will go on with the ports, nothing is accepted during the drain, so it is short: requests that
//! have come are answered, and sessions are closed within [`SPREAD`].

mod accept;
mod door;
mod request_id;
mod stream;
mod upgrade;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::{Extension, Router};
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection;
use crate::console;
use crate::net::address::Proxies;
use crate::net::address::shares::Shares;
use crate::net::arrivals::Arrivals;
use crate::net::lobby::Lobby;
use crate::net::refusals::Refusals;
use crate::net::surface::Surface;
use crate::net::tls::Tls;
use crate::node::Node;
use crate::node::background;
use crate::node::bounded::bounded;
use crate::node::paced::paced;
use crate::node::positions;
use crate::protocol::Close;
use crate::settings::Settings;
use accept::Acceptor;

/// The most time that sessions may take to end after the drain has told all of them.
const GOODBYE: Duration = Duration::from_secs(5);

/// The most time over which sessions are closed while nothing is accepted.
const SPREAD: Duration = Duration::from_millis(250);

/// The most time that connections without a request may take to end while nothing is accepted. They are cut then.
const LINGER: Duration = Duration::from_millis(250);

/// How many bytes of a connection the kernel may hold that are written and not sent (the kernel doubles this number).
/// Without a bound they grow to megabytes for a peer that reads slowly or not at all, and nothing counts them.
const SEND_BUFFER: usize = 128 * 1024;

/// What the ports of a gateway share.
pub(crate) struct Ports {
    pub(crate) node: Arc<Node>,
    /// The routes of the API.
    pub(crate) api: Router,
    /// What every WebSocket is served with.
    pub(crate) connections: Arc<connection::Shared>,
    /// The trusted proxies, which say for whom a connection counts.
    pub(crate) proxies: ArcSwap<Proxies>,
    /// The connections and upgrades that are counted for each address.
    pub(crate) shares: Arc<Shares>,
    /// Bounds the log lines about refused requests for a session.
    pub(crate) refusals: Refusals,
    /// Every task that serves a peer; a drain waits for them.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the drain begins.
    pub(crate) stopping: CancellationToken,
    /// Cancelled some time before the drain, if another process will go on with the ports.
    pub(crate) last_call: CancellationToken,
    /// The requests that have come and have no answer yet.
    pub(crate) asked: TaskTracker,
    /// How many ports are served.
    served: AtomicUsize,
}

impl Ports {
    pub(crate) fn new(
        node: Arc<Node>,
        api: Router,
        connections: Arc<connection::Shared>,
        tasks: TaskTracker,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        let proxies = ArcSwap::from_pointee(node.settings.now().proxies().expect("the settings were checked"));
        let shares = Shares::new(node.settings.now().shares());
        let refusals = Refusals::of("a request for a session");
        let (last_call, asked, served) = (CancellationToken::new(), TaskTracker::new(), AtomicUsize::new(0));
        let parts =
            Self { node, api, connections, proxies, shares, refusals, tasks, stopping, last_call, asked, served };
        Arc::new(parts)
    }

    /// Uses these limits and trusted proxies for connections that come from now on, and these limits and times for
    /// connections that are open.
    pub(crate) fn replace_settings(&self, settings: Settings, proxies: Proxies) {
        self.shares.allow(settings.shares());
        self.proxies.store(Arc::new(proxies));
        self.node.replace_settings(settings);
    }

    /// Serves one more port, which offers `surface`, with TLS if `tls` is given, until `shutdown` resolves; then drains
    /// all ports. Dropping the future closes the port, without a drain.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        surface: Surface,
        tls: Option<Tls>,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.served.fetch_add(1, Ordering::AcqRel);
        // Connections inherit this size from their listener.
        SockRef::from(&listener).set_send_buffer_size(SEND_BUFFER)?;
        let router = match surface {
            Surface::All => self.api.clone().merge(console::router()),
            Surface::Readers => self.api.clone(),
        };
        let router = router.layer(Extension(surface));
        let lobby = Lobby::new(self.node.settings.now().http_connections as usize);
        let acceptor = Acceptor { ports: self.clone(), router, surface, tls, lobby };
        let mut arrivals = Arrivals::of(listener);
        let (accepting, background) = (acceptor.accept_all(&mut arrivals), background::run(&self.node));
        tokio::pin!(accepting, background);
        tokio::select! {
            () = &mut accepting => {}
            () = &mut background => {}
            () = shutdown => {}
        }
        // During the drain, new connections are refused, and the lease is kept for the sessions that are still here.
        tokio::select! {
            () = &mut accepting => {}
            () = &mut background => {}
            () = self.drain() => {}
        }
        self.leave().await;
        Ok(())
    }

    /// Closes every session, spread over time, and waits until they have ended. Before the first session is closed,
    /// `/readyz` answers 503 and no new session is let in.
    async fn drain(&self) {
        self.stopping.cancel();
        let spread = Duration::from_millis(self.node.settings.now().drain_ms.into());
        let hands_over = self.last_call.is_cancelled();
        let (spread, goodbye) = if hands_over { (spread.min(SPREAD), LINGER) } else { (spread, GOODBYE) };
        paced(&self.node.local.pool.all(), spread, |slot| slot.close(Close::Shutdown)).await;
        self.tasks.close();
        self.asked.close();
        if hands_over && timeout(GOODBYE, self.asked.wait()).await.is_err() {
            tracing::warn!(left = self.asked.len(), "requests were not answered in time");
        }
        // A connection that is cut had no request, or is a session that was told to end.
        if timeout(goodbye, self.tasks.wait()).await.is_err() && !hands_over {
            tracing::warn!(left = self.tasks.len(), "connections did not end in time");
        }
    }

    /// Waits until nothing more is to be accepted.
    async fn until_closed(&self) {
        self.stopping.cancelled().await;
        if !self.last_call.is_cancelled() {
            std::future::pending().await
        }
    }

    /// Saves the positions that are left; then, as the last port, gives the lease back.
    async fn leave(&self) {
        let local = &self.node.local;
        // Each connection saved its positions when it ended; this call saves those of connections that did not end.
        if let Err(error) = positions::save(local).await {
            tracing::warn!(%error, "the last positions could not be saved; some devices will repeat a little");
        }
        if self.served.fetch_sub(1, Ordering::AcqRel) == 1
            && let Err(error) = bounded(local.sessions.retire(&local.node)).await
        {
            tracing::warn!(%error, "the node's lease could not be given back; it lapses by itself");
        }
    }
}
