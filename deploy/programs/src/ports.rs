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
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};

use crate::inherited::Inherited;
use crate::passed::Held;
use crate::settings::Settings;

/// Ports that are bound and not yet served.
pub(crate) struct Ports {
    /// The listeners, each with what it offers.
    pub(crate) listeners: Vec<(TcpListener, Surface)>,
    /// The listeners once more, for the program that takes the ports over.
    pub(crate) held: Vec<Held>,
    addresses: Vec<SocketAddr>,
}

impl Ports {
    /// Binds what the settings ask for, one port, or two if they split, except listeners that were given.
    pub(crate) fn bind(settings: &Settings, inherited: Inherited) -> anyhow::Result<Self> {
        let wanted = if settings.splits() {
            vec![("listen", settings.listen, Surface::Readers), ("admin_listen", settings.admin_listen, Surface::All)]
        } else {
            vec![("listen", settings.listen, Surface::All)]
        };
        if let Some(unused) = settings.unused() {
            tracing::warn!("{unused}");
        }
        let asked: Vec<_> = wanted.iter().map(|(setting, address, _)| (*setting, *address)).collect();
        let listeners = open(&asked, inherited)?;
        let mut bound = Self { listeners: Vec::new(), held: Vec::new(), addresses: Vec::new() };
        for ((setting, _, surface), listener) in wanted.into_iter().zip(listeners) {
            bound.addresses.push(listener.local_addr()?);
            bound.held.push(Held::of(setting, &listener)?);
            bound.listeners.push((listener, surface));
        }
        Ok(bound)
    }

    /// The address where devices connect.
    pub(crate) fn devices(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The address where the API key is accepted. It is the address of the last port.
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

/// The listeners of these settings, in their order: those that were given, and new ones for the rest.
pub(crate) fn open(
    wanted: &[(&'static str, SocketAddr)],
    mut inherited: Inherited,
) -> anyhow::Result<Vec<TcpListener>> {
    let claimed: Vec<_> = wanted.iter().map(|(setting, address)| inherited.claim(setting, *address)).collect();
    // The rest is closed before anything is bound, since it may be in the way.
    inherited.end(wanted)?;
    let open = wanted.iter().zip(claimed).map(|((setting, address), claimed)| match claimed {
        Some(listener) => taken(listener).with_context(|| format!("the socket that was given for {setting}")),
        None => bind(setting, *address),
    });
    open.collect()
}

/// A listener that was given, made ready as if it was bound here.
fn taken(listener: std::net::TcpListener) -> std::io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    SockRef::from(&listener).listen(BACKLOG as i32)?;
    TcpListener::from_std(listener)
}

/// Binds one port, whose setting is also a flag.
fn bind(setting: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let flag = setting.replace('_', "-");
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
