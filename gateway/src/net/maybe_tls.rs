//! The bytes of one connection, with or without TLS: what HTTP is served on, and what a session keeps after that.
//!
//! ```text
//!   HTTP     AsyncRead, AsyncWrite ──┐
//!   session  poll_readable, try_read ┴▶ Plain: the socket        Tls: records of rustls ─▶ the socket
//! ```
//!
//! Invariants:
//! - TLS that reads pulls no more from the socket while plaintext waits to be taken, so rustls holds one record at
//!   most.
//! - TLS that writes has at most [`WAITS`] bytes which the socket has not taken; the rest stays with the caller, who
//!   counts it.

use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConnection;
use tokio_rustls::server::TlsStream;

/// The most bytes of plaintext that TLS takes before the socket has taken the ones before: one record.
const WAITS: usize = 16 * 1024;

/// A connection whose peer is a device, a backend, or a proxy before them.
#[derive(Debug)]
pub(crate) enum MaybeTls {
    /// Bytes go to the socket as they are.
    Plain(TcpStream),
    /// Bytes are encrypted. The box keeps a session without TLS small.
    Tls(Box<TlsStream<TcpStream>>),
}

impl MaybeTls {
    /// A connection whose TLS handshake is done.
    pub(super) fn encrypted(mut stream: TlsStream<TcpStream>) -> Self {
        stream.get_mut().1.set_buffer_limit(Some(WAITS));
        Self::Tls(Box::new(stream))
    }

    /// The socket that the bytes go to, as they are or encrypted.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Ready once [`try_read`](Self::try_read) has something to give: bytes, the end, or an error. Pending wakes the
    /// task later. Each time that TLS pulls from the socket, one is taken from `left` and added to `pulled`; with none
    /// left, the task is woken again.
    pub(super) fn poll_readable(
        &mut self,
        cx: &mut Context<'_>,
        left: &mut u32,
        pulled: &mut u32,
    ) -> Poll<io::Result<()>> {
        let stream = match self {
            Self::Plain(tcp) => return tcp.poll_read_ready(cx),
            Self::Tls(stream) => stream,
        };
        let (tcp, tls) = stream.get_mut();
        // Plaintext is asked for first: when it waits, the socket need not become ready again.
        while !has_plaintext(tcp, tls)? {
            ready!(tcp.poll_read_ready(cx))?;
            let Some(fewer) = left.checked_sub(1) else {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            };
            match tls.read_tls(&mut Bare(tcp)) {
                Ok(0) => break,
                Ok(_) => (*left, *pulled) = (fewer, *pulled + 1),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what is there, and gives how many bytes; 0 if the peer has ended. Fails with `WouldBlock` if nothing is
    /// there.
    pub(super) fn try_read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.try_read(buf),
            Self::Tls(stream) => stream.get_mut().1.reader().read(buf),
        }
    }
}

/// Decrypts what was read from the socket, and tells whether there is plaintext or the peer's end of TLS to take. Bytes
/// that TLS itself has to send are written as far as the socket takes them; the next flush sends the rest.
fn has_plaintext(tcp: &TcpStream, tls: &mut ServerConnection) -> io::Result<bool> {
    let processed = tls.process_new_packets();
    if tls.wants_write() {
        let _ = tls.write_tls(&mut Bare(tcp));
    }
    let state = processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
}

/// A socket that is read and written without waiting.
struct Bare<'a>(&'a TcpStream);

impl Read for Bare<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }
}

impl io::Write for Bare<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.try_write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `$do`, with `$stream` as the plain or the encrypted stream.
macro_rules! either {
    ($either:expr, $stream:ident => $do:expr) => {
        match $either.get_mut() {
            MaybeTls::Plain(tcp) => {
                let $stream = Pin::new(tcp);
                $do
            }
            MaybeTls::Tls(tls) => {
                let $stream = Pin::new(&mut **tls);
                $do
            }
        }
    };
}

impl AsyncRead for MaybeTls {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for MaybeTls {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(tcp) => tcp.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
