//! Ports nobody listens on.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those the kernel gives to outgoing connections: none of these takes the port of a server
/// that is down for a moment.
const PORTS: Range<u16> = 20_000..32_000;

/// A port of the loopback that is free now, and is not answered again by this process for long.
pub(crate) fn free_port() -> u16 {
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
