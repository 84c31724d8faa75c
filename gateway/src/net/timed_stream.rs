//! A connection that ends if its peer receives nothing, or too little, or sends nothing for too long.
//!
//! ```text
//!   silent ── first byte ──▶ a head ──▶ a request is being answered ──▶ silent again
//!      │ by what the peer has shown         │ as long as it takes          connections are used again: a peer with
//!      └────▶ end ◀──── `timeout` ──────────┘ (writes: see below)          the API key may pause for minutes
//! ```
//!
//! If the server closes a connection while its peer sends the next request, that request gets no answer. So the wait
//! between two requests is longer than clients and load balancers keep a connection for, as [`Guest::may_rest`] says.
//!
//! An answer of the HTTP API stays in memory until its last byte has left; a peer that asks and does not read would
//! keep it there for ever. A session has a [`Pace`] of its own and takes the connection without these limits.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::limits::pace::Pace;
use crate::net::lobby::Guest;
use crate::net::maybe_tls::MaybeTls;

/// A connection with limits of time for its reads and writes.
pub(crate) struct TimedStream {
    stream: MaybeTls,
    timeout: Duration,
    /// The moment from which the times of `pace` are counted.
    born: Instant,
    /// Set by the first write that had to wait. It is kept while the peer has time left, so that a peer that has
    /// received a part of an answer does not get all of its time again.
    pace: Option<Pace>,
    /// The timer that runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
    guest: Arc<Guest>,
    /// How many requests had begun when the connection was last read.
    requests: u32,
    /// When the first byte of the next request came, while its head is not complete.
    head: Option<Instant>,
    /// When something was last read or written.
    active: Instant,
    /// The timer that runs while a read waits.
    listening: Option<Pin<Box<Sleep>>>,
    /// The timer that runs while TLS holds bytes which the socket does not take.
    draining: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    /// A write fails if the peer receives nothing for `timeout`, or too little for too long. A flush fails if the
    /// socket does not take within `timeout` what TLS holds: one record at most. A read ends if the head of a request
    /// takes as long as `timeout`, or if none begins for as long as `guest` may rest.
    pub(crate) fn new(stream: MaybeTls, timeout: Duration, guest: Arc<Guest>) -> Self {
        let (born, requests) = (Instant::now(), guest.requests());
        let (pace, waiting, head, listening, draining) = (None, None, None, None, None);
        Self { stream, timeout, born, pace, waiting, guest, requests, head, active: born, listening, draining }
    }

    /// By when the peer must have sent more; `None` while a request is being answered.
    fn listens_until(&self) -> Option<Instant> {
        if self.guest.is_asking() {
            return None;
        }
        Some(self.head.map_or_else(|| self.active + self.guest.may_rest(self.timeout), |head| head + self.timeout))
    }

    /// Gives the connection without the limits of time.
    pub(crate) fn into_inner(self) -> MaybeTls {
        self.stream
    }

    /// Ready once the peer has sent nothing for too long.
    fn listen(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(until) = self.listens_until() else {
            self.listening = None;
            return Poll::Pending;
        };
        let listening = self.listening.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if listening.deadline() != until {
            listening.as_mut().reset(until);
        }
        listening.as_mut().poll(cx)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn within(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            self.waiting = None;
            self.active = Instant::now();
            if let (Some(mut pace), Ok(bytes)) = (self.pace, &written) {
                pace.took(self.now(), *bytes);
                self.pace = Some(pace);
            }
            return Poll::Ready(written);
        }
        let now = self.now();
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            waiting @ None => {
                let pace = self.pace.filter(|pace| now < pace.until());
                let pace = self.pace.insert(pace.unwrap_or_else(|| Pace::begin(now, self.timeout)));
                let until = self.born + Duration::from_millis(pace.until());
                waiting.insert(Box::pin(tokio::time::sleep_until(until)))
            }
        };
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(self.timed_out()))
    }

    /// Fails once a flush, or the end of the stream, has waited for `timeout`.
    fn drained(&mut self, drained: Poll<io::Result<()>>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if drained.is_ready() {
            self.draining = None;
            return drained;
        }
        let draining = self.draining.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.timeout)));
        ready!(draining.as_mut().poll(cx));
        Poll::Ready(Err(self.timed_out()))
    }

    /// The kernel also drops the bytes that it still holds for the peer.
    fn timed_out(&self) -> io::Error {
        let _ = self.stream.tcp().set_zero_linger();
        io::ErrorKind::TimedOut.into()
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.requests != this.guest.requests() {
            (this.requests, this.head) = (this.guest.requests(), None);
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if read.is_ready() {
            this.active = Instant::now();
            if buf.filled().len() > before && !this.guest.is_asking() {
                this.head.get_or_insert(this.active);
            }
            return read;
        }
        ready!(this.listen(cx));
        // Reading ends as if the peer had ended the stream.
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.within(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.within(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        // A server that found nothing to read while it answered reads again only when its task is woken.
        if flushed.is_ready() && this.listen(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        this.drained(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.drained(ended, cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use socket2::SockRef;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::ClientConfig;
    use tokio_rustls::rustls::crypto::ring;

    use super::*;
    use crate::net::tls::{Pem, Tls};

    /// A certificate of this test for the next hundred years, and its key.
    const LOCALHOST: &[u8] = include_bytes!("localhost.pem");

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// Two ends of a connection whose socket buffers are small: the peer's, and that of the server.
    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        SockRef::from(&listener).set_send_buffer_size(4096).unwrap();
        let to = listener.local_addr().unwrap();
        let peer = tokio::net::TcpSocket::new_v4().unwrap();
        peer.set_recv_buffer_size(4096).unwrap();
        let (peer, ours) = tokio::join!(peer.connect(to), listener.accept());
        (peer.unwrap(), ours.unwrap().0)
    }

    fn timed(stream: MaybeTls) -> TimedStream {
        TimedStream::new(stream, TIMEOUT, Arc::new(Guest::new(None)))
    }

    /// How many seconds of a paused clock a peer that reads `step` bytes a second is waited for; at most an hour.
    async fn waited_for(step: usize) -> u64 {
        let (peer, ours) = connected().await;
        let mut patient = timed(MaybeTls::Plain(ours));
        let writing = tokio::spawn(async move { patient.write_all(&vec![0; 4 << 20]).await });
        let mut some = vec![0; step];
        for second in 0..3600 {
            if writing.is_finished() {
                assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
                return second;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let _ = peer.try_read(&mut some);
        }
        3600
    }

    #[tokio::test(start_paused = true)]
    async fn i18_a_peer_that_takes_its_answer_drop_by_drop_is_cut_as_one_that_takes_nothing_is() {
        let (nothing, drops) = (waited_for(0).await, waited_for(1024).await);
        assert!(nothing <= 11, "{nothing}");
        assert!(drops <= 15, "{drops}");
    }

    /// TLS takes the last record of an answer from the server at once. A peer that reads nothing more leaves it there.
    #[tokio::test(start_paused = true)]
    async fn i18_a_peer_by_tls_that_leaves_the_end_of_its_answer_is_cut() {
        let (peer, ours) = connected().await;
        let tls = Tls::new(Pem { certificate: LOCALHOST, key: LOCALHOST, client_ca: None }).unwrap();
        let roots = feedgate_tls::pem::authorities(LOCALHOST).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let (ours, peer) = tokio::join!(tls.accept(ours), connector.connect("localhost".try_into().unwrap(), peer));
        let (mut ours, _peer) = (timed(ours.unwrap()), peer.unwrap());
        let write = |ours: &mut TimedStream, cx: &mut Context<'_>| Pin::new(ours).poll_write(cx, &[0; 1024]);
        while poll_fn(|cx| Poll::Ready(write(&mut ours, cx))).await.is_ready() {}
        let began = Instant::now();
        let flushed = tokio::time::timeout(6 * TIMEOUT, ours.flush()).await.expect("a flush waits no longer");
        assert_eq!((flushed.unwrap_err().kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 10));
        let ended = tokio::time::timeout(6 * TIMEOUT, ours.shutdown()).await.expect("nor does the end");
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
