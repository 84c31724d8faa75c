//! Choice of free ports, and further tries where another process took one first.
//!
//! Between the choice of a port and the moment when a server binds it, any other process can take it. A server that
//! binds port 0 has no such gap. But the kernel chooses that port among those of outgoing connections, and an engine
//! that is started again needs its port once more: so engines get a port of another range, and a second try.

use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

/// Below those the kernel gives to outgoing connections: none of these takes the port of a server
/// that is down for a moment.
const PORTS: Range<u16> = 20_000..32_000;

/// How often a server is started before its test fails because ports are taken.
const TRIES: usize = 10;
/// For a server that needs the same port again: another process that looks for a free port holds it for less.
const PAUSE: Duration = Duration::from_millis(100);

/// A server ended because another process listens on one of its ports.
#[derive(Debug)]
pub struct PortTaken {
    /// What the server wrote.
    pub log: String,
}

impl fmt::Display for PortTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a port of the server is taken:\n{}", self.log)
    }
}

impl std::error::Error for PortTaken {}

/// A port of the loopback that is free now, and is not answered again by this process for long. Another process may
/// take it before it is used: see [`on_free_ports`].
pub fn free_port() -> u16 {
    // Processes that run side by side begin at different places.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let _ = NEXT.compare_exchange(0, rand::random_range(PORTS), Ordering::Relaxed, Ordering::Relaxed);
    for _ in PORTS {
        let port = PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % (PORTS.end - PORTS.start);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free")
}

/// Calls `start` until none of its ports is taken, and answers what it gives. `start` chooses its ports anew at each
/// call. Blocks; panics with the server's log after 10 calls.
pub fn on_free_ports<T>(mut start: impl FnMut() -> Result<T, PortTaken>) -> T {
    for _ in 1..TRIES {
        match start() {
            Ok(started) => return started,
            Err(PortTaken { .. }) => thread::sleep(PAUSE),
        }
    }
    start().unwrap_or_else(|taken| panic!("{TRIES} times {taken}"))
}
