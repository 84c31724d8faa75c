//! Serves one port: accepts connections, and drains when told to stop.
//!
//! A shutdown goes in this order: `/readyz` and every new WebSocket get 503; every session is closed with 3001, spread
//! over `drain_ms` so that not all of them return in one instant; positions are saved; the lease is given back.

mod accept;
mod upgrade;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Extension;
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::net::arrivals::Arrivals;
use crate::net::lobby::Lobby;
use crate::node::background::{self, paced};
use crate::node::bounded::bounded;
use crate::protocol::Close;
use crate::{Gateway, Surface};
use accept::Acceptor;

/// The most time that sessions may take to end after the drain has told all of them.
const GOODBYE: Duration = Duration::from_secs(5);

/// How many bytes of a connection the kernel may hold that are written and not sent (it doubles this number). Without a
/// bound they grow to megabytes for a peer that reads slowly or not at all, and nothing counts them.
const SEND_BUFFER: usize = 128 * 1024;

/// Serves `surface` until `shutdown` resolves, then drains. Dropping the future closes the port, without a drain. A
/// gateway may serve several ports at a time; all of them stop together.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    surface: Surface,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    gateway.ports.fetch_add(1, Ordering::AcqRel);
    // Connections inherit this size from their listener.
    SockRef::from(&listener).set_send_buffer_size(SEND_BUFFER)?;
    let router = crate::routes(&gateway).layer(Extension(surface));
    let lobby = Lobby::new(gateway.node.settings.http_connections as usize);
    let node = Node { acceptor: Acceptor { gateway: gateway.clone(), router, lobby }, gateway };
    let mut arrivals = Arrivals::of(listener);
    let (accepting, background) = (node.acceptor.accept_all(&mut arrivals), background::run(&node.gateway.node));
    tokio::pin!(accepting, background);
    tokio::select! {
        () = &mut accepting => {}
        () = &mut background => {}
        () = shutdown => {}
    }
    // During the drain, new connections are told to go elsewhere, and the lease is kept for those that are still here.
    tokio::select! {
        () = &mut accepting => {}
        () = &mut background => {}
        () = node.drain() => {}
    }
    node.leave().await;
    Ok(())
}

struct Node {
    gateway: Arc<Gateway>,
    acceptor: Acceptor,
}

impl Node {
    /// Closes every session, spread over time, and waits until they have ended. Before the first session is closed,
    /// `/readyz` answers 503 and no new session is let in.
    async fn drain(&self) {
        self.gateway.stopping.cancel();
        let spread = Duration::from_millis(self.gateway.node.settings.drain_ms.into());
        paced(&self.gateway.node.pool.all(), spread, |slot| slot.close(Close::Shutdown)).await;
        self.gateway.tasks.close();
        if timeout(GOODBYE, self.gateway.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.gateway.tasks.len(), "connections did not end in time");
        }
    }

    /// Saves the positions that are left; then, as the last port, gives the lease back.
    async fn leave(&self) {
        let Gateway { node, ports, .. } = &*self.gateway;
        // Each connection has saved its own as it ended; this is for those that did not end.
        if let Err(error) = node.positions.save(node).await {
            tracing::warn!(%error, "the last positions could not be saved; some devices will repeat a little");
        }
        if ports.fetch_sub(1, Ordering::AcqRel) == 1
            && let Err(error) = bounded(node.sessions.retire(&node.name)).await
        {
            tracing::warn!(%error, "the node's lease could not be given back; it lapses by itself");
        }
    }
}
