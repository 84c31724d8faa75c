//! The way of a connection from an accepted socket to HTTP, and from there to a WebSocket or to the API.
//!
//! ```text
//!   accept ──▶ is there room for its address? ──▶ the lobby ──▶ http1 ──┬─▶ /connection/websocket ──▶ upgrade
//!                 └─▶ 429                                               └─▶ everything else ──▶ api
//! ```

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Ports;
use super::upgrade::{self, Door};
use crate::net::address::shares::{Stay, TooMany};
use crate::net::address::{Client, proxy_protocol};
use crate::net::arrivals::Arrivals;
use crate::net::lobby::{Admission, Lobby, Standing};
use crate::net::timed_stream::TimedStream;

/// The time for the head of a request on a connection that was accepted during the drain.
const LATE: Duration = Duration::from_secs(1);

/// The most bytes of the head of a request, and of a body that is buffered.
const HEAD_MAX: usize = 16 * 1024;

/// Why a connection has ended early.
type Ended = Box<dyn Error + Send + Sync>;

/// Accepts the connections of one port.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) ports: Arc<Ports>,
    /// The routes of the API.
    pub(crate) router: Router,
    /// The HTTP connections of the port, which leave when they become a WebSocket.
    pub(crate) lobby: Arc<Lobby>,
}

impl Acceptor {
    /// Accepts connections for ever. It may be dropped at any time; connections that were admitted go on.
    pub(crate) async fn accept_all(&self, arrivals: &mut Arrivals) {
        self.ports.node.begun.cancelled().await;
        loop {
            let (stream, peer) = arrivals.next().await;
            self.receive(stream, peer.ip()).await;
        }
    }

    /// Admits a connection, and leaves the rest to a task of its own. If its address may have no more, refuses
    /// it.
    async fn receive(&self, stream: TcpStream, peer: IpAddr) {
        let client = self.ports.proxies.client(peer);
        let stay = match self.count(client) {
            Ok(stay) => stay,
            Err(too_many) => return self.refuse(&stream, client, too_many),
        };
        let (admission, acceptor) = (self.lobby.enter(stay).await, self.clone());
        self.ports.tasks.spawn(async move {
            if let Err(error) = acceptor.converse(stream, peer, admission).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }

    fn count(&self, client: Client) -> Result<Option<Stay>, TooMany> {
        client.0.map(|key| self.ports.shares.enter(key, self.ports.node.elapsed_ms())).transpose()
    }

    /// Closes a connection, and says why, unless its address was told so too often lately.
    fn refuse(&self, stream: &TcpStream, client: Client, too_many: TooMany) {
        if client.0.is_some_and(|key| self.ports.shares.may_hear_why(key, self.ports.node.elapsed_ms())) {
            // The socket's buffer is still empty, so the answer fits without waiting.
            let _ = SockRef::from(stream).send(refusal(too_many).as_bytes());
        } else {
            // A reset leaves nothing to do, neither here nor for the kernel.
            let _ = stream.set_zero_linger();
        }
    }

    /// Serves one HTTP connection, until it ends, has to make room, or becomes a WebSocket.
    async fn converse(self, mut stream: TcpStream, peer: IpAddr, admission: Admission) -> Result<(), Ended> {
        // This fails only if the peer has gone already, which the first read will tell.
        let _ = stream.set_nodelay(true);
        let (guest, stopping) = (admission.guest.clone(), self.ports.stopping.clone());
        let late = stopping.is_cancelled();
        let connect_within = Duration::from_secs(self.ports.node.settings.connect_within_secs.into());
        let within = if late { LATE } else { connect_within };
        let named = tokio::select! {
            named = timeout(within, self.named(&mut stream, peer)) => named??,
            () = guest.asked_to_leave() => return Ok(()),
        };
        if !guest.is_counted() {
            match self.count(named) {
                Ok(stay) => stay.into_iter().for_each(|stay| guest.counts(stay)),
                Err(too_many) => {
                    self.refuse(&stream, named, too_many);
                    return Ok(());
                }
            }
        }
        let connection = http1::Builder::new()
            .keep_alive(!late)
            // The stream limits this time: hyper counts the pause between two requests as part of the head.
            .header_read_timeout(None)
            .max_buf_size(HEAD_MAX)
            .serve_connection(
                TokioIo::new(TimedStream::new(stream, within, admission.guest.clone())),
                self.service(peer, named, &admission),
            )
            .with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            biased;
            // The connection goes first, so that a request that has arrived is seen before its sender has to go.
            ended = &mut connection => return Ok(ended?),
            () = guest.asked_to_leave() => {
                if guest.standing() < Standing::Reader {
                    return Ok(());
                }
                connection.as_mut().graceful_shutdown();
            }
            // A connection that is accepted after that still gets the answer to one request.
            () = stopping.cancelled(), if !late => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    }

    /// The client that the connection counts for, as far as that is known before the first request.
    async fn named(&self, stream: &mut TcpStream, peer: IpAddr) -> io::Result<Client> {
        let proxies = &self.ports.proxies;
        if proxies.speak_proxy_protocol(peer) {
            proxy_protocol::read(stream, peer).await
        } else {
            Ok(proxies.client(peer))
        }
    }

    /// Makes the service that answers the requests of one connection.
    fn service(
        &self,
        peer: IpAddr,
        named: Client,
        admission: &Admission,
    ) -> impl Service<
        Request<Incoming>,
        Response = axum::response::Response,
        Error = std::convert::Infallible,
        Future: Send,
    > + use<> {
        let (api, ports) = (TowerToHyperService::new(self.router.clone()), self.ports.clone());
        let guest = admission.guest.clone();
        service_fn(move |mut request: Request<Incoming>| {
            let asking = guest.asks();
            let client = if named.0.is_some() { named } else { ports.proxies.client_of(peer, request.headers()) };
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(guest.clone());
            let is_upgrade = request.uri().path() == upgrade::PATH;
            let door = is_upgrade.then(|| Door { asked_ms: ports.node.elapsed_ms(), ports: ports.clone() });
            let api = api.clone();
            async move {
                let answer = match door {
                    Some(door) => Ok(upgrade::answer(&door, request)),
                    None => api.call(request).await,
                };
                drop(asking);
                answer
            }
        })
    }
}

/// The answer to a connection whose address has reached a limit, as bytes of HTTP/1.1.
fn refusal(too_many: TooMany) -> String {
    let problem = serde_json::json!({
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": too_many.text(),
    });
    let problem = problem.to_string();
    format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{problem}",
        problem.len()
    )
}
