//! Turns a connection into a session, if the answer to its request is to go on for as long as that session.
//!
//! ```text
//!   the API answers 200 with a `Begin` ──▶ admitted ──▶ the bare connection leaves hyper ──▶ a small session task
//!                                             └──▶ 429, or 503
//! ```
//!
//! The head of the answer is written by the session's task, so that nothing of hyper stays in its memory.

use std::sync::Arc;

use axum::body::Body;
use hyper::{Response, header};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::sync::mpsc;

use super::door::{Door, Refused};
use crate::connection::{Arrival, Connection};
use crate::net::address::shares::Stay;
use crate::net::stream::{Begin, Framing, Stream};
use crate::net::timed_stream::TimedStream;
use crate::net::transport::Transport;
use crate::node::slot::Slot;
use crate::protocol::Format;

/// A session that begins on the connection of its request.
pub(super) struct Takeover {
    door: Door,
    slot: Arc<Slot>,
    stay: Option<Box<Stay>>,
    begin: Begin,
    /// The head of the answer, as bytes of HTTP/1.1.
    head: Vec<u8>,
}

/// Hands the connection over if the API's answer begins a stream; then this future never resolves, and is dropped with
/// the HTTP connection. Else gives the answer, or a refusal in place of the answer.
pub(super) async fn hand_over(door: Door, mut answer: Response<Body>, to: &mpsc::Sender<Takeover>) -> Response<Body> {
    let Some(begin) = answer.extensions_mut().remove::<Begin>() else { return answer };
    let admitted = door.count().and_then(|counted| Ok((counted, door.slot()?)));
    let (counted, slot) = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => {
            door.counts(refused.status);
            return with_headers_of(&answer, refused);
        }
    };
    door.counts(answer.status());
    let stay = door.stay(counted);
    let takeover = Takeover { door, slot, stay, begin, head: head(&answer) };
    // A connection answers one request at a time, so the channel has room.
    let _ = to.try_send(takeover);
    std::future::pending().await
}

/// The refusal with the headers of `answer`, so that a web page that could read the answer can read the refusal too.
fn with_headers_of(answer: &Response<Body>, refused: Refused) -> Response<Body> {
    let mut response = refused.response();
    for (name, value) in answer.headers() {
        if !response.headers().contains_key(name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn head(answer: &Response<Body>) -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n".to_vec();
    // The router has set the length of its own answer, which is empty; this answer has no length.
    for (name, value) in answer.headers().iter().filter(|(name, _)| **name != header::CONTENT_LENGTH) {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

impl Takeover {
    /// Begins the session on the bare stream of the HTTP connection.
    pub(super) fn begin(self, io: TokioIo<TimedStream>) {
        let Self { door: Door { ports, asked_ms, .. }, slot, stay, begin, head } = self;
        let format = match begin.framing {
            Framing::Bytes => Format::Protobuf,
            Framing::Lines | Framing::Events => Format::Json,
            Framing::OneWay => Format::OneWay,
        };
        let stream = io.into_inner().into_inner();
        // A client that cannot answer pings is gone once it has confirmed no bytes for so long. The call fails only if
        // the client is gone already.
        let _ = SockRef::from(stream.tcp()).set_tcp_user_timeout(Some(ports.node.settings.silence));
        let mailbox = ports.node.local.mailboxes.open(number());
        let stream = Stream::new(stream, &head, begin, mailbox);
        let arrival = Arrival { transport: Transport::Stream(Box::new(stream)), format, asked_ms, slot, stay };
        ports.tasks.spawn(Connection::new(ports.connections.clone(), arrival));
    }

    /// Gives back the place on the node, since the HTTP connection has ended before the session began.
    pub(super) fn give_up(self) {
        self.door.ports.node.local.pool.depart(&self.slot);
    }
}

/// A random number for a session or a request; it cannot be guessed.
pub(super) fn number() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u128::from_ne_bytes(bytes)
}
