//! Binds the ports of the server before anything else is opened: a port in use is the likeliest mistake.
//!
//! ```text
//!   listen is loopback, no port has TLS     listen: everything
//!   it is not, or one of them has           listen: devices and readers          admin_listen: everything
//! ```

use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::{Context, bail};
use feedgate_gateway::Surface;
use tokio::net::{TcpListener, TcpSocket};

use crate::settings::Settings;

/// Ports that are bound and not yet served.
pub(crate) struct Ports {
    /// The listeners, each with what it offers.
    pub(crate) listeners: Vec<(TcpListener, Surface)>,
    addresses: Vec<SocketAddr>,
}

impl Ports {
    /// Binds what the settings ask for: one port, or two if they split.
    pub(crate) fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let wanted = if settings.splits() {
            vec![("listen", settings.listen, Surface::Readers), ("admin-listen", settings.admin_listen, Surface::All)]
        } else {
            vec![("listen", settings.listen, Surface::All)]
        };
        let mut bound = Self { listeners: Vec::new(), addresses: Vec::new() };
        for (flag, address, surface) in wanted {
            let listener = bind(flag, address)?;
            bound.addresses.push(listener.local_addr()?);
            bound.listeners.push((listener, surface));
        }
        Ok(bound)
    }

    /// The address where devices connect.
    pub(crate) fn devices(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The address where the API key is accepted, which is that of the last port.
    pub(crate) fn backends(&self) -> SocketAddr {
        self.addresses[self.addresses.len() - 1]
    }
}

/// How many connections may wait to be accepted: those of a burst, as when all devices of another node come at once.
/// The system may allow fewer (net.core.somaxconn).
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Without this, connections of a process that has ended would keep the port in use.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Binds one port, whose setting is also the flag `--FLAG`.
pub(crate) fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    match listen(address) {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            bail!("{address} is in use by another program; stop that one, or choose another with --{flag} IP:PORT")
        }
        Err(error) => {
            Err(error).with_context(|| format!("cannot listen on {address}; choose another with --{flag} IP:PORT"))
        }
    }
}
