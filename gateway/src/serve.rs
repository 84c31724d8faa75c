//! One port: accepts, hands each connection to hyper, and drains when told to stop.
//!
//! ```text
//!   accept ──▶ http1 connection ──┬─▶ /connection/websocket ──▶ upgrade ──▶ session task
//!      ▲                          └─▶ everything else ──▶ api
//!      └── permits: as many sockets as the settings allow, and some for the API
//! ```
//!
//! On shutdown, in this order: `/readyz` and every new WebSocket get 503; every session is closed with 3001, spread
//! over `drain_ms` so that not all of them return in one instant; positions are saved; the lease is given back.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::address::proxy_protocol;
use crate::background::{self, paced};
use crate::bounded::bounded;
use crate::patient::Patient;
use crate::protocol::Close;
use crate::upgrade::{self, Door};
use crate::{Gateway, Surface};

/// Sockets beyond `settings.connections`, so that a full node can still be operated.
const HTTP_SPARE: usize = 1024;

/// How long sessions may take to say goodbye after the drain has told all of them.
const GOODBYE: Duration = Duration::from_secs(5);

/// For the head of a request on a connection that was accepted during the drain.
const LATE: Duration = Duration::from_secs(1);

/// After accepting failed for want of resources.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// What the kernel may hold of what was written to a connection and not sent (it doubles this): without a bound it grows
/// to megabytes for a peer that reads slowly or not at all, and nothing counts them.
const SEND_BUFFER: usize = 128 * 1024;

/// Serves `surface` until `shutdown` resolves, then drains. Cancelling it closes the port and abandons
/// the connections. A gateway may serve several ports at a time; all of them stop together.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    surface: Surface,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    gateway.ports.fetch_add(1, Ordering::AcqRel);
    // Connections have what their listener has.
    SockRef::from(&listener).set_send_buffer_size(SEND_BUFFER)?;
    let node = Node {
        router: crate::routes(&gateway).layer(Extension(surface)),
        permits: Arc::new(Semaphore::new(gateway.parts.settings.connections as usize + HTTP_SPARE)),
        gateway,
    };
    let (accepting, background) = (node.accept_all(&listener), background::run(&node.gateway));
    tokio::pin!(accepting, background);
    tokio::select! {
        () = &mut accepting => {}
        () = &mut background => {}
        () = shutdown => {}
    }
    // Whoever still comes is told to go elsewhere, and the lease is kept for those who are still here.
    tokio::select! {
        () = &mut accepting => {}
        () = &mut background => {}
        () = node.drain() => {}
    }
    node.leave().await;
    Ok(())
}

/// Why a connection has ended early.
type Ended = Box<dyn Error + Send + Sync>;

#[derive(Clone)]
struct Node {
    gateway: Arc<Gateway>,
    router: Router,
    permits: Arc<Semaphore>,
}

impl Node {
    async fn accept_all(&self, listener: &TcpListener) {
        self.gateway.begun.cancelled().await;
        loop {
            let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            match listener.accept().await {
                Ok((stream, peer)) => self.start(stream, peer.ip(), permit),
                Err(error) if is_peer_fault(&error) => {}
                Err(error) => {
                    // EMFILE and its kin pass as others hang up; spinning would only burn a core.
                    tracing::warn!(%error, "accepting connections failed");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }

    fn start(&self, stream: TcpStream, peer: IpAddr, permit: OwnedSemaphorePermit) {
        let node = self.clone();
        self.gateway.tasks.spawn(async move {
            if let Err(error) = node.converse(stream, peer, permit).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }

    /// One HTTP connection, until it ends or becomes a WebSocket.
    async fn converse(self, mut stream: TcpStream, peer: IpAddr, permit: OwnedSemaphorePermit) -> Result<(), Ended> {
        // Fails only if the peer has gone already, which the first read will tell.
        let _ = stream.set_nodelay(true);
        let Self { router, gateway, .. } = self;
        let (permit, stopping) = (Arc::new(permit), gateway.stopping.clone());
        let (late, settings) = (stopping.is_cancelled(), &gateway.parts.settings);
        let within = if late { LATE } else { Duration::from_secs(settings.connect_within_secs.into()) };
        let proxies = &gateway.proxies;
        let named = if proxies.speak_proxy_protocol(peer) {
            timeout(within, proxy_protocol::read(&mut stream, peer)).await??
        } else {
            proxies.client(peer)
        };
        let (api, gateway) = (TowerToHyperService::new(router), gateway.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let client = if named.0.is_some() { named } else { gateway.proxies.client_of(peer, request.headers()) };
            request.extensions_mut().insert(client);
            let upgrade = (request.uri().path() == upgrade::PATH).then(|| Door {
                asked_ms: gateway.elapsed_ms(),
                gateway: gateway.clone(),
                permit: permit.clone(),
            });
            let api = api.clone();
            async move {
                match upgrade {
                    Some(door) => Ok(upgrade::answer(&door, request)),
                    None => api.call(request).await,
                }
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(!late)
            .header_read_timeout(within)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(Patient::new(stream, within)), service)
            .with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            ended = &mut connection => return Ok(ended?),
            // Who comes after that still gets the answer to one request.
            () = stopping.cancelled(), if !late => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    }

    /// Closes every session, paced, and waits until they have said goodbye. Before the first of them learns of it,
    /// `/readyz` says so and no new one is let in.
    async fn drain(&self) {
        self.gateway.stopping.cancel();
        let spread = Duration::from_millis(self.gateway.parts.settings.drain_ms.into());
        paced(&self.gateway.pool.all(), spread, |slot| slot.close(Close::Shutdown)).await;
        self.gateway.tasks.close();
        if timeout(GOODBYE, self.gateway.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.gateway.tasks.len(), "connections did not end in time");
        }
    }

    /// Saves what is left to save; then, as the last port, gives the lease back.
    async fn leave(&self) {
        let Gateway { parts, positions, ports, .. } = &*self.gateway;
        // Each connection has saved its own as it left; this is for those that did not end.
        if let Err(error) = positions.save(&self.gateway).await {
            tracing::warn!(%error, "the last positions could not be saved; some devices will repeat a little");
        }
        if ports.fetch_sub(1, Ordering::AcqRel) == 1
            && let Err(error) = bounded(parts.sessions.retire(&parts.node)).await
        {
            tracing::warn!(%error, "the node's lease could not be given back; it lapses by itself");
        }
    }
}

fn is_peer_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
