//! The way of a connection from an accepted socket to HTTP, and from there to a WebSocket or to the API.
//!
//! ```text
//!   accept ──▶ is there room for its address? ──▶ the lobby ──▶ TLS, if the port has it
//!                 └─▶ 429                                         └─▶ http1 ──┬─▶ /connection/websocket ──▶ upgrade
//!                                                                             └─▶ everything else ──▶ api
//!                                                          an answer of the api that goes on ──▶ stream ◀──┘
//! ```

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use feedgate_common::trace;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use super::Ports;
use super::door::Door;
use super::request_id::RequestId;
use super::stream::{self, Takeover};
use super::upgrade;
use crate::net::address::shares::{Stay, TooMany};
use crate::net::address::{Client, proxy_protocol};
use crate::net::arrivals::Arrivals;
use crate::net::lobby::{Admission, Lobby, Standing};
use crate::net::maybe_tls::MaybeTls;
use crate::net::surface::Surface;
use crate::net::timed_stream::TimedStream;
use crate::net::tls::Tls;

/// The time for the head of a request on a connection that was accepted during the drain.
const LATE: Duration = Duration::from_secs(1);

/// How long a connection that was accepted before a hand-over has for a request that is on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// The most bytes of the head of a request, and of a body that is buffered.
const HEAD_MAX: usize = 16 * 1024;

/// Why a connection has ended early.
type Ended = Box<dyn Error + Send + Sync>;

/// Accepts the connections of one port.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) ports: Arc<Ports>,
    /// The routes of the API, and those of the console where it is served.
    pub(crate) router: Router,
    /// What the port offers.
    pub(crate) surface: Surface,
    /// What the port serves TLS with, if it does.
    pub(crate) tls: Option<Tls>,
    /// The HTTP connections of the port, which leave when they become a WebSocket.
    pub(crate) lobby: Arc<Lobby>,
}

impl Acceptor {
    /// Accepts connections for ever, but not during the drain before a hand-over. The future may be dropped at any
    /// time; connections that were admitted go on.
    pub(crate) async fn accept_all(&self, arrivals: &mut Arrivals) {
        self.ports.node.begun.cancelled().await;
        let closed = self.ports.until_closed();
        tokio::pin!(closed);
        loop {
            let (stream, peer) = tokio::select! {
                biased;
                () = &mut closed => std::future::pending().await,
                arrived = arrivals.next() => arrived,
            };
            self.receive(stream, peer.ip()).await;
        }
    }

    /// Admits a connection, and leaves the rest to a task of its own. If the address of the connection has reached a
    /// limit, refuses the connection.
    async fn receive(&self, stream: TcpStream, peer: IpAddr) {
        let client = self.ports.proxies.load().client(peer);
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
        client.0.map(|key| self.ports.shares.enter(key, self.ports.node.uptime.elapsed_ms())).transpose()
    }

    /// Closes a connection, and says why, unless its address was told so too often lately. On a port with TLS nothing
    /// is said, since a client understands nothing before the handshake.
    fn refuse(&self, stream: &TcpStream, client: Client, too_many: TooMany) {
        let may_hear = |key| self.ports.shares.may_hear_why(key, self.ports.node.uptime.elapsed_ms());
        if self.tls.is_none() && client.0.is_some_and(may_hear) {
            // The socket's buffer is still empty, so the answer fits without waiting.
            let _ = SockRef::from(stream).send(refusal(too_many).as_bytes());
        } else {
            // A reset leaves nothing to do, neither here nor for the kernel.
            let _ = stream.set_zero_linger();
        }
    }

    /// Serves one HTTP connection, until it ends, has to make room for another, or becomes a session.
    async fn converse(self, mut stream: TcpStream, peer: IpAddr, admission: Admission) -> Result<(), Ended> {
        // This fails only if the peer has gone already, which the first read will show.
        let _ = stream.set_nodelay(true);
        let (guest, stopping) = (admission.guest.clone(), self.ports.stopping.clone());
        let connect_within = Duration::from_secs(self.ports.node.settings.now().connect_within_secs.into());
        let within = if stopping.is_cancelled() { LATE } else { connect_within };
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
        let stream = tokio::select! {
            stream = timeout(within, self.encrypt(stream)) => stream??,
            () = guest.asked_to_leave() => return Ok(()),
        };
        // A connection that was accepted before the drain may get here during it.
        let late = stopping.is_cancelled();
        let within = if late { LATE } else { within };
        let (hand_over, mut handed_over) = mpsc::channel(1);
        let mut connection = http1::Builder::new()
            .keep_alive(!late)
            // The stream limits this time instead: hyper counts the pause between two requests as part of the head.
            .header_read_timeout(None)
            // A client may end its side of the connection after a request, and still gets the answer.
            .half_close(true)
            .max_buf_size(HEAD_MAX)
            .serve_connection(
                TokioIo::new(TimedStream::new(stream, within, admission.guest.clone())),
                self.service(peer, named, &admission, hand_over),
            )
            .with_upgrades();
        let ending = async {
            stopping.cancelled().await;
            if self.ports.last_call.is_cancelled() {
                sleep(ON_ITS_WAY).await;
            }
        };
        tokio::pin!(ending);
        let mut is_ending = false;
        loop {
            tokio::select! {
                biased;
                // The connection goes first, so that a request that has arrived is seen before its sender has to go.
                ended = &mut connection => {
                    if let Ok(takeover) = handed_over.try_recv() {
                        takeover.give_up();
                    }
                    return Ok(ended?);
                }
                Some(takeover) = handed_over.recv() => {
                    let parts = connection.into_parts().expect("it is no WebSocket, because its request has no answer");
                    takeover.begin(parts.io);
                    return Ok(());
                }
                () = guest.asked_to_leave(), if !is_ending => {
                    if guest.standing() < Standing::Reader {
                        return Ok(());
                    }
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                    is_ending = true;
                }
                // A connection that was accepted after the drain began still gets the answer to one request.
                () = &mut ending, if !late && !is_ending => {
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                    is_ending = true;
                }
            }
        }
    }

    /// The client that the connection counts for, as far as that is known before the first request.
    async fn named(&self, stream: &mut TcpStream, peer: IpAddr) -> io::Result<Client> {
        let proxies = self.ports.proxies.load_full();
        if proxies.speak_proxy_protocol(peer) {
            proxy_protocol::read(stream, peer).await
        } else {
            Ok(proxies.client(peer))
        }
    }

    /// Does the handshake of a port that serves TLS.
    async fn encrypt(&self, stream: TcpStream) -> io::Result<MaybeTls> {
        match &self.tls {
            Some(tls) => tls.accept(stream).await,
            None => Ok(MaybeTls::Plain(stream)),
        }
    }

    /// Makes the service that answers the requests of one connection.
    fn service(
        &self,
        peer: IpAddr,
        named: Client,
        admission: &Admission,
        hand_over: mpsc::Sender<Takeover>,
    ) -> impl Service<
        Request<Incoming>,
        Response = axum::response::Response,
        Error = std::convert::Infallible,
        Future: Send,
    > + use<> {
        let (api, ports) = (TowerToHyperService::new(self.router.clone()), self.ports.clone());
        let (guest, surface) = (admission.guest.clone(), self.surface);
        service_fn(move |mut request: Request<Incoming>| {
            let asking = (guest.asks(), ports.asked.token());
            let client =
                if named.0.is_some() { named } else { ports.proxies.load().client_of(peer, request.headers()) };
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(guest.clone());
            let asked_ms = ports.node.uptime.elapsed_ms();
            let door = Door { asked_ms, ports: ports.clone(), surface, client, guest: guest.clone() };
            let (api, hand_over) = (api.clone(), hand_over.clone());
            let last_call = ports.last_call.clone();
            let id = RequestId::of(request.headers());
            let span = id.span();
            if trace::is_on() {
                id.mark(request.headers_mut());
            }
            let answering = async move {
                let answer = if request.uri().path() == upgrade::PATH {
                    let mut answer = upgrade::answer(&door, request);
                    id.mark(answer.headers_mut());
                    door.counts(answer.status());
                    answer
                } else {
                    let mut answer = api.call(request).await?;
                    id.mark(answer.headers_mut());
                    if last_call.is_cancelled() {
                        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    }
                    stream::hand_over(door, answer, &hand_over).await
                };
                drop(asking);
                Ok(answer)
            };
            answering.instrument(span)
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
