//! Accepts the connections that come to one port. Other tasks get their turn during a flood of connections, and
//! accepting goes on after the process has run out of descriptors.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

/// How many connections are accepted in a row before other tasks and other sockets get their turn.
const TURN: u32 = 16;

/// How long to wait after accepting failed because resources have run out.
const BACKOFF: Duration = Duration::from_millis(100);

/// The least time between two log lines about such failures.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The connections that come to one port. Dropping this closes the port.
#[derive(Debug)]
pub struct Arrivals {
    listener: TcpListener,
    left_of_turn: u32,
    logged: Option<Instant>,
}

impl Arrivals {
    /// Accepts from a port that already listens.
    pub fn of(listener: TcpListener) -> Self {
        Self { listener, left_of_turn: TURN, logged: None }
    }

    /// Waits for the next connection, and gives it with the address of its peer. Cancel safe.
    pub async fn next(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if self.left_of_turn == 0 {
                yield_now().await;
                self.left_of_turn = TURN;
            }
            self.left_of_turn -= 1;
            match self.listener.accept().await {
                Ok(arrived) => return arrived,
                Err(error) if is_peer_fault(&error) => {}
                Err(error) => {
                    if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
                        tracing::error!(%error, "connections cannot be accepted");
                        self.logged = Some(Instant::now());
                    }
                    // Errors such as EMFILE end when other connections close; trying again at once would only burn a
                    // core.
                    sleep(BACKOFF).await;
                }
            }
        }
    }
}

fn is_peer_fault(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_flood_of_connections_leaves_others_their_turn() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let _flood: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(to).unwrap()).collect();
        let mut arrivals = Arrivals::of(listener);
        let (accepted, turns) = (Cell::new(0), Cell::new(0));
        let accepting = async {
            while accepted.get() < 100 {
                drop(arrivals.next().await);
                accepted.set(accepted.get() + 1);
            }
        };
        let others = async {
            while accepted.get() < 100 {
                turns.set(turns.get() + 1);
                yield_now().await;
            }
        };
        tokio::join!(accepting, others);
        assert!(turns.get() >= 6, "{} turns", turns.get());
    }
}
