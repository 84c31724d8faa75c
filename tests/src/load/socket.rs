//! The socket of a device, with or without TLS.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use anyhow::Context;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A connected socket that is read and written without waiting.
pub(super) struct Socket {
    stream: TcpStream,
    /// The state of TLS, if the server speaks it.
    tls: Option<RefCell<ClientConnection>>,
    /// Whether TLS may hold bytes that the last read had no room for.
    more: Cell<bool>,
}

/// What devices need to connect by TLS to servers with the certificate in `file`, which is in PEM and signed by itself.
pub(super) fn trust(file: &std::path::Path) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file).with_context(|| file.display().to_string())?)?;
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// Shakes hands over a connected stream.
pub(super) async fn shake_hands(stream: TcpStream, tls: &Arc<ClientConfig>) -> anyhow::Result<TlsStream<TcpStream>> {
    let name = stream.peer_addr()?.ip().into();
    Ok(TlsConnector::from(tls.clone()).connect(name, stream).await?)
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self { stream, tls: None, more: Cell::new(false) }
    }
}

impl From<TlsStream<TcpStream>> for Socket {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        let (stream, tls) = stream.into_inner();
        Self { stream, tls: Some(RefCell::new(tls)), more: Cell::new(true) }
    }
}

impl Socket {
    /// Waits until there may be something to read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        if self.more.get() { Ok(()) } else { self.stream.readable().await }
    }

    /// Reads what has come, as far as it fits into `bytes`: how many bytes that were, 0 if the peer has hung up. Fails
    /// with [`ErrorKind::WouldBlock`] if nothing has come.
    pub(super) fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return self.stream.try_read(bytes) };
        let (tls, mut read) = (&mut *tls.borrow_mut(), 0);
        self.more.set(false);
        while read < bytes.len() {
            match tls.reader().read(&mut bytes[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.receive(tls) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock && read > 0 => break,
                    received => received?,
                },
                Err(error) => return Err(error),
            }
        }
        self.more.set(read == bytes.len());
        Ok(read)
    }

    /// Takes in encrypted bytes that have come.
    fn receive(&self, tls: &mut ClientConnection) -> io::Result<()> {
        tls.read_tls(&mut Ready(&self.stream))?;
        tls.process_new_packets().map_err(io::Error::other)?;
        self.send(tls)
    }

    /// Writes all of `bytes`; fails if not all fit into the buffer of the socket.
    pub(super) fn try_write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else { return Ready(&self.stream).write_all(bytes) };
        let tls = &mut *tls.borrow_mut();
        tls.writer().write_all(bytes)?;
        self.send(tls)
    }

    fn send(&self, tls: &mut ClientConnection) -> io::Result<()> {
        while tls.wants_write() {
            tls.write_tls(&mut Ready(&self.stream))?;
        }
        Ok(())
    }
}

/// A stream as rustls reads and writes it: what would wait is an error.
struct Ready<'a>(&'a TcpStream);

impl Read for Ready<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(bytes)
    }
}

impl Write for Ready<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
