//! One connection to a device, and the bytes that wait to be written to it.
//!
//! Invariants:
//! - What waits to be written is counted in the user's share of the node's [budget](crate::limits::budget) as soon as
//!   the peer makes it wait.
//! - The memory of what waits is given back to the allocator as soon as all is written.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use feedgate_common::trace::Pushing;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::budget::{Reservation, Share};
use crate::limits::pace::Pace;
use crate::net::maybe_tls::MaybeTls;

/// The most read calls for what a peer sends after our last bytes; each call reads at most 1 KiB.
const READS_AFTER_CLOSE: u32 = 256;

/// The most read calls per poll, so that a flood of tiny fragments does not hold a thread.
const READS_PER_POLL: u32 = 64;

/// A connection, and what waits to be written to it.
#[derive(Debug)]
pub(crate) struct Link {
    stream: MaybeTls,
    /// The bytes that wait to be written; `None` if there are none.
    out: Option<Box<Outgoing>>,
    /// The reads that were not yet taken by [`take_reads`](Self::take_reads), which charges them to the rate of reads.
    pub(super) reads: u32,
    /// How many read calls are left in this poll of the task.
    pub(super) reads_left: u32,
}

/// The bytes that wait to be written.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// The part of the room for `bytes` that is counted in the budget.
    held: Option<Reservation>,
    /// Whether there was no room to count all of `bytes`.
    uncounted: bool,
    /// Until when the peer must take more bytes; set by the first write that had to wait.
    pace: Option<Pace>,
    /// The traced changes among `bytes`.
    pushing: Option<Pushing>,
}

impl Link {
    /// A link on which nothing waits to be written; `reads` counts what was read of `stream` before.
    pub(super) fn new(stream: MaybeTls, reads: u32) -> Self {
        Self { stream, out: None, reads, reads_left: READS_PER_POLL }
    }

    /// Allows this poll of the task its number of read calls. Call once at its start.
    pub(crate) fn begin_poll(&mut self) {
        self.reads_left = READS_PER_POLL;
    }

    /// The bytes that wait to be written; more may be appended.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.out.get_or_insert_default().bytes
    }

    /// Whether nothing waits to be written, so that no memory is taken for it.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_none()
    }

    /// Takes the count of reads since the last call. A read of up to 256 bytes counts as one, or as the number of
    /// frames that began in it, if that is larger.
    pub(crate) fn take_reads(&mut self) -> u32 {
        std::mem::take(&mut self.reads)
    }

    /// Keeps the reservation `held` for the bytes that are sent next, until all bytes are written.
    pub(crate) fn hold(&mut self, held: Reservation) {
        match &mut self.out.get_or_insert_default().held {
            Some(before) => before.merge(held),
            none => *none = Some(held),
        }
    }

    /// Notes that changes among the bytes that are sent next are traced: their spans end when all bytes are written.
    pub(crate) fn traces(&mut self, pushing: Pushing) {
        match &mut self.out.get_or_insert_default().pushing {
            Some(before) => before.merge(pushing),
            none => *none = Some(pushing),
        }
    }

    /// Counts all that waits to be written in the user's share, as far as there is room. Call when a flush had to wait.
    pub(crate) fn count(&mut self, share: impl FnOnce() -> Arc<Share>) {
        let Some(Outgoing { bytes, held, uncounted, .. }) = self.out.as_deref_mut() else { return };
        let all = bytes.capacity();
        if held.as_ref().is_some_and(|held| held.bytes() == all) {
            return;
        }
        match held {
            Some(held) => *uncounted = !held.resize(all),
            None => {
                *held = share().try_reserve(all);
                *uncounted = held.is_none();
            }
        }
    }

    /// Whether more waits to be written than there was room to count.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.out.as_ref().is_some_and(|out| out.uncounted)
    }

    /// How many bytes are not yet taken by this machine's network stack.
    pub(crate) fn unsent(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.bytes.len() - out.written)
    }

    /// The time, in milliseconds, at which the peer is too slow; `None` if it does not make us wait.
    pub(crate) fn too_slow_at(&self) -> Option<u64> {
        Some(self.out.as_ref()?.pace?.until())
    }

    /// Writes until all is written, then gives the buffer back to the allocator. A peer that makes us wait is too slow
    /// once it has taken nothing for `timeout`; `now` gives the time in milliseconds.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        timeout: Duration,
        now: impl Fn() -> u64,
    ) -> Poll<io::Result<()>> {
        let Self { stream, out, .. } = self;
        let mut stream = Pin::new(stream);
        let Some(Outgoing { bytes, written, pace, .. }) = out.as_deref_mut() else { return stream.poll_flush(cx) };
        let flushed = loop {
            let rest = &bytes[*written..];
            if rest.is_empty() {
                break stream.poll_flush(cx);
            }
            match stream.as_mut().poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    *written += n;
                    if let Some(pace) = pace {
                        pace.took(now(), n);
                    }
                }
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        match flushed {
            Poll::Pending => {
                pace.get_or_insert_with(|| Pace::begin(now(), timeout));
            }
            Poll::Ready(Ok(())) => {
                if let Some(pushing) = out.take().and_then(|all| all.pushing) {
                    pushing.sent();
                }
            }
            Poll::Ready(Err(_)) => {}
        }
        flushed
    }

    /// Reads and drops what the peer still sends after our last bytes, until the peer ends the connection: closing with
    /// unread bytes would reset the connection, and the peer might never see why. Gives up after [`READS_AFTER_CLOSE`]
    /// reads.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..READS_PER_POLL {
            match ready!(self.poll_skip(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) if self.reads >= READS_AFTER_CLOSE => return Poll::Ready(()),
                Ok(_) => self.reads += 1,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready once [`try_read`](Self::try_read) has something to give. Each time that TLS pulls bytes from the socket
    /// for this counts as a read.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_readable(cx, &mut self.reads_left, &mut self.reads)
    }

    /// Reads what is there, and gives how many bytes; 0 if the peer has ended. Fails with `WouldBlock` if nothing is
    /// there, or if this poll has used its read calls.
    pub(super) fn try_read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads_left = self.reads_left.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
        self.stream.try_read(buf)
    }

    /// Reads and drops up to a KiB of what the peer sends, and gives how much; 0 if the peer has ended.
    pub(super) fn poll_skip(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut sink = [0; 1024];
        let mut sink = ReadBuf::new(&mut sink);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut sink))?;
        Poll::Ready(Ok(sink.filled().len()))
    }

    /// Tells the peer that nothing more comes. Call when all is written.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.stream).poll_shutdown(cx).map(|_| ())
    }
}
