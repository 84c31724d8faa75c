//! A network between a client and its server that can go wrong: it goes silent, or loses the reply to a COMMIT.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses its part; what fails says where")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The tag of a transaction that the server has committed.
const COMMITTED: &[u8] = b"COMMIT\0";

/// What ends every round trip: ready for query.
const READY: &[u8] = b"Z\0\0\0\x05";

#[derive(Default)]
struct State {
    silent: AtomicBool,
    loses_commits: AtomicBool,
    round_trips: AtomicUsize,
}

/// A proxy before one server, for all connections that are made to its port.
pub(crate) struct Proxy {
    server: u16,
    port: u16,
    state: Arc<State>,
}

impl Proxy {
    /// Starts a proxy in front of the server on this port.
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, shared.clone()));
            }
        });
        Self { server, port, state }
    }

    /// The URL `direct` of a database, changed so that it leads through the proxy.
    pub(crate) fn url(&self, direct: &str) -> String {
        direct.replace(&format!(":{}/", self.server), &format!(":{}/", self.port))
    }

    /// Nothing arrives any more, in either direction, and no connection breaks.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }

    /// The connection breaks once the server has committed, before the client hears of it.
    pub(crate) fn lose_replies_to_commits(&self, lose: bool) {
        self.state.loses_commits.store(lose, Ordering::SeqCst);
    }

    pub(crate) fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }
}

async fn carry(mut client: TcpStream, server: u16, state: Arc<State>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let (to, bytes) = tokio::select! {
            read = client.read(&mut asked) => (&mut server, &asked[..read.unwrap_or(0)]),
            read = server.read(&mut answered) => {
                let bytes = &answered[..read.unwrap_or(0)];
                state.round_trips.fetch_add(occurrences(bytes, READY), Ordering::SeqCst);
                if state.loses_commits.load(Ordering::SeqCst) && occurrences(bytes, COMMITTED) > 0 {
                    return;
                }
                (&mut client, bytes)
            }
        };
        if state.silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if bytes.is_empty() || to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

fn occurrences(bytes: &[u8], of: &[u8]) -> usize {
    bytes.windows(of.len()).filter(|window| *window == of).count()
}
