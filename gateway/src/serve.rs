//! One port: accepts, hands each connection to hyper, and drains when told to stop.
//!
//! ```text
//!   accept ──▶ http1 connection ──┬─▶ /connection/websocket ──▶ upgrade ──▶ session task
//!      ▲                          └─▶ everything else ──▶ api
//!      └── permits: as many sockets as the settings allow, and some for the API
//! ```
//!
//! On shutdown: no new connections; every session is closed with 3001, spread over
//! `drain_ms` so that not all of them return in one instant; positions are saved; then it ends.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::patient::Patient;
use crate::protocol::Close;
use crate::upgrade::{self, Door};
use crate::{Gateway, Surface, positions};

/// Sockets beyond `settings.connections`, so that a full node can still be operated.
const HTTP_SPARE: usize = 1024;

/// How long sessions may take to say goodbye after the drain has told all of them.
const GOODBYE: Duration = Duration::from_secs(5);

/// After accepting failed for want of resources.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Serves `surface` until `shutdown` resolves, then drains. Cancelling it closes the port and abandons
/// the connections. A gateway may serve several ports at a time; all of them stop together.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    surface: Surface,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let node = Node {
        router: crate::routes(&gateway).layer(Extension(surface)),
        permits: Arc::new(Semaphore::new(gateway.parts.settings.connections as usize + HTTP_SPARE)),
        stopping: CancellationToken::new(),
        gateway,
    };
    let accepting = node.accept_all(&listener);
    let saving = positions::keep_saving(&node.gateway);
    tokio::select! {
        () = accepting => {}
        () = saving => {}
        () = shutdown => {}
    }
    drop(listener);
    node.drain().await;
    Ok(())
}

#[derive(Clone)]
struct Node {
    gateway: Arc<Gateway>,
    router: Router,
    permits: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl Node {
    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            match listener.accept().await {
                Ok((stream, _)) => self.start(stream, permit),
                Err(error) if is_peer_fault(&error) => {}
                Err(error) => {
                    // EMFILE and its kin pass as others hang up; spinning would only burn a core.
                    tracing::warn!(%error, "accepting connections failed");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }

    fn start(&self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        let node = self.clone();
        self.gateway.tasks.spawn(async move {
            if let Err(error) = node.converse(stream, permit).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }

    /// One HTTP connection, until it ends or becomes a WebSocket.
    async fn converse(self, stream: TcpStream, permit: OwnedSemaphorePermit) -> hyper::Result<()> {
        // Fails only if the peer has gone already, which the first read will tell.
        let _ = stream.set_nodelay(true);
        let within = Duration::from_secs(self.gateway.parts.settings.connect_within_secs.into());
        let Self { router, stopping, gateway, .. } = self;
        let (permit, told) = (Arc::new(permit), stopping.clone());
        let api = TowerToHyperService::new(router);
        let service = service_fn(move |request: Request<Incoming>| {
            let upgrade = (request.uri().path() == upgrade::PATH).then(|| Door {
                asked_ms: gateway.elapsed_ms(),
                gateway: gateway.clone(),
                permit: permit.clone(),
                stopping: told.clone(),
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
            .header_read_timeout(within)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(Patient::new(stream, within)), service)
            .with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            ended = &mut connection => return ended,
            () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    }

    async fn drain(&self) {
        self.stopping.cancel();
        let slots = self.gateway.pool.all();
        let spread = Duration::from_millis(self.gateway.parts.settings.drain_ms.into());
        let started = tokio::time::Instant::now();
        for (n, slot) in slots.iter().enumerate() {
            if n % 16 == 0 {
                tokio::time::sleep_until(started + spread.mul_f64(n as f64 / slots.len() as f64)).await;
            }
            slot.close(Close::Shutdown);
        }
        self.gateway.tasks.close();
        if tokio::time::timeout(GOODBYE, self.gateway.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.gateway.tasks.len(), "connections did not end in time");
        }
        // Each connection has saved its own as it left; this is for those that did not end.
        if let Err(error) = self.gateway.positions.save(&self.gateway).await {
            tracing::warn!(%error, "the last positions could not be saved; some devices will repeat a little");
        }
    }
}

fn is_peer_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
