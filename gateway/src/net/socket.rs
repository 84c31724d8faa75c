//! A WebSocket on a bare TCP stream, polled by one task.
//!
//! ```text
//!   TcpStream ──▶ tungstenite's context (frames, masks, limits, pongs, close) ──▶ Incoming
//!   TcpStream ◀── out ◀── our frames, and the context's pongs and close
//! ```
//!
//! Invariants:
//! - Every byte to the peer passes through `out`, in order; nothing is ever written in the middle of a frame.
//! - What waits to be written is counted in the user's share of the node's [budget](crate::limits::budget) as soon as
//!   the peer makes it wait.
//! - `out` is given back to the allocator as soon as it is written; so is a reader's buffer that a large message has
//!   stretched, once it is empty. An idle socket holds [`READ_BUFFER`] bytes.
//! - Reading never waits for writing: messages of a peer that does not read are still received.
//!
//! tungstenite's context is driven directly rather than through its stream wrapper: that saves two waker proxies per
//! connection, and the wrapper's write buffer, which never shrinks.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes, error::ProtocolError};

use crate::limits::budget::{Reservation, Share};
use crate::limits::pace::Pace;
use crate::net::frame_heads::{BAD_GATEWAY, FrameHeads};

/// The bytes of the reader's buffer, which a connection keeps for life: room for a pong or an `ack`. A larger frame
/// stretches the buffer while it is read.
pub(crate) const READ_BUFFER: usize = 256;

/// The most read calls for what a peer sends after our close frame, each of a KiB at most.
const READS_AFTER_CLOSE: u32 = 256;

/// The most read calls per poll, so that a flood of tiny fragments does not hold a thread.
const READS_PER_POLL: u32 = 64;

/// What was received from the peer.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A text message, with its payload.
    Text(Utf8Bytes),
    /// A binary message, with its payload.
    Binary(Bytes),
    /// A ping, which was already answered, or a pong.
    Control,
    /// A close frame of the peer, which was already answered.
    Goodbye,
}

/// The kind of the frames that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    Text = 0x81,
    Binary = 0x82,
}

/// Why nothing more can be received.
#[derive(Debug)]
pub(crate) enum Broken {
    /// A message or a frame is larger than allowed. The peer is still to be told.
    TooBig,
    /// A text message is not UTF-8. The peer is still to be told.
    NotUtf8,
    /// A frame breaks RFC 6455 in another way. The peer is still to be told.
    Protocol,
    /// The connection is lost.
    Gone,
}

/// One WebSocket: the frames that are being read, and the bytes that wait to be written.
#[derive(Debug)]
pub(crate) struct Socket {
    context: WebSocketContext,
    wire: Wire,
    frames: Frames,
    /// How many bytes the messages that came out of the context would take as frames of the shortest form. At most
    /// `Wire::taken`; equal only if the context holds nothing, not even a part of a frame. Both wrap around.
    understood: u32,
    /// Whether a message has stretched the reader's buffer.
    stretched: bool,
    /// Whether the context still holds bytes that came before the upgrade; the stream does not become ready for these.
    early: bool,
}

#[derive(Debug)]
struct Wire {
    tcp: TcpStream,
    /// The bytes that wait to be written; `None` if there are none.
    out: Option<Box<Outgoing>>,
    /// How many bytes were handed to the context. Wraps around.
    taken: u32,
    /// How many calls have read something since this was last asked. A call in which several frames begin counts for
    /// each.
    reads: u32,
    heads: FrameHeads,
    reads_left: u32,
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
    /// How long the peer is waited for; set by the first write that had to wait.
    pace: Option<Pace>,
}

impl Socket {
    /// Makes the WebSocket of a connection that was upgraded. `early` holds bytes of frames that came before the
    /// upgrade was done. No message or frame of the peer may exceed `message_max` bytes. Those that are sent are of the
    /// kind `frames`.
    pub(crate) fn new(tcp: TcpStream, early: &[u8], message_max: usize, frames: Frames) -> Self {
        let config = config(message_max);
        let (mut heads, mut read) = (FrameHeads::default(), early.to_vec());
        let begun = heads.pass(&mut read);
        let (taken, reads) = (early.len() as u32, begun.max(early.len().div_ceil(READ_BUFFER) as u32));
        let context = match early {
            [] => WebSocketContext::new(Role::Server, Some(config)),
            _ => WebSocketContext::from_partially_read(read, Role::Server, Some(config)),
        };
        let wire = Wire { tcp, out: None, taken, reads, heads, reads_left: READS_PER_POLL };
        Self { context, wire, frames, understood: 0, stretched: !early.is_empty(), early: !early.is_empty() }
    }

    /// Allows this poll of the task its number of read calls. Call once at its start.
    pub(crate) fn begin_poll(&mut self) {
        self.wire.reads_left = READS_PER_POLL;
    }

    /// Limits every message and frame to `message_max` bytes, from now on.
    pub(crate) fn allow(&mut self, message_max: usize) {
        self.context.set_config(|old| *old = config(message_max));
    }

    /// How often something was read since this was last called, [`READ_BUFFER`] bytes at most each time; or how many
    /// frames began in it, if these are more.
    pub(crate) fn take_reads(&mut self) -> u32 {
        std::mem::take(&mut self.wire.reads)
    }

    /// Reads the next message. Pending if none is complete, or if this poll has used its read calls; then the task is
    /// woken again.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Incoming, Broken>> {
        loop {
            // Asking for readiness first saves a system call on every wake that was not about reading.
            if !self.early && ready!(self.wire.tcp.poll_read_ready(cx)).is_err() {
                return Poll::Ready(Err(Broken::Gone));
            }
            match self.context.read(&mut self.wire) {
                Ok(message) => return Poll::Ready(Ok(self.sort(message))),
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.early = false;
                    self.shrink();
                    if self.wire.reads_left == 0 {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Err(error) => return Poll::Ready(Err(broken(&error))),
            }
        }
    }

    /// Gives a stretched buffer back to the allocator if nothing is in it.
    fn shrink(&mut self) {
        if self.stretched && self.understood == self.wire.taken && self.context.can_write() {
            self.context = WebSocketContext::new(Role::Server, Some(*self.context.get_config()));
            self.stretched = false;
        }
    }

    fn sort(&mut self, message: Message) -> Incoming {
        self.understood = self.understood.wrapping_add(shortest_frame(message.len()) as u32);
        self.stretched |= message.len() > READ_BUFFER / 2;
        match message {
            Message::Text(text) => Incoming::Text(text),
            Message::Binary(bytes) => Incoming::Binary(bytes),
            Message::Frame(_) => unreachable!("only a writer is given bare frames"),
            Message::Ping(_) | Message::Pong(_) => {
                // Moves the pong into `out`, which cannot fail.
                let _ = self.context.flush(&mut self.wire);
                Incoming::Control
            }
            Message::Close(_) => {
                self.answer_close();
                Incoming::Goodbye
            }
        }
    }

    /// Moves the answer to a close frame into `out`.
    fn answer_close(&mut self) {
        let begins_at = self.wire.out().bytes.len();
        // The flush always fails, with the news that the connection is closed, which is known here.
        let _ = self.context.flush(&mut self.wire);
        if self.wire.heads.is_bad_gateway()
            && let Some(code) = self.wire.out().bytes.get_mut(begins_at + 2..begins_at + 4)
        {
            code.copy_from_slice(&BAD_GATEWAY.to_be_bytes());
        }
    }

    /// Appends one frame, whose payload `write` appends to what it is given.
    pub(crate) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let kind = self.frames as u8;
        let out = &mut self.wire.out().bytes;
        let start = out.len();
        out.extend_from_slice(&[kind, 0, 0, 0]);
        write(out);
        let len = out.len() - start - 4;
        match len {
            0..=125 => {
                out[start + 1] = len as u8;
                out.copy_within(start + 4.., start + 2);
                out.truncate(start + 2 + len);
            }
            126..=0xFFFF => {
                out[start + 1] = 126;
                out[start + 2..start + 4].copy_from_slice(&(len as u16).to_be_bytes());
            }
            _ => {
                out[start + 1] = 127;
                out.extend_from_slice(&[0; 6]);
                out.copy_within(start + 4..start + 4 + len, start + 10);
                out[start + 2..start + 10].copy_from_slice(&(len as u64).to_be_bytes());
            }
        }
    }

    /// Appends a close frame with this code; its reason is `text`, and goes on with `why` unless that is empty. Nothing
    /// may follow it.
    pub(crate) fn close(&mut self, code: u16, text: &'static str, why: &'static str) {
        let reason = match why {
            "" => Utf8Bytes::from_static(text),
            why => format!("{text}: {why}").into(),
        };
        let frame = CloseFrame { code: code.into(), reason };
        // Closing fails only if the peer has closed already.
        let _ = self.context.close(&mut self.wire, Some(frame));
    }

    /// Counts what is sent next as `held`, until all is written.
    pub(crate) fn hold(&mut self, held: Reservation) {
        match &mut self.wire.out().held {
            Some(before) => before.merge(held),
            none => *none = Some(held),
        }
    }

    /// Counts all that waits to be written in the user's share, as far as there is room. Call when a flush had to wait.
    pub(crate) fn count(&mut self, share: impl FnOnce() -> Arc<Share>) {
        let Some(Outgoing { bytes, held, uncounted, .. }) = self.wire.out.as_deref_mut() else { return };
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
        self.wire.out.as_ref().is_some_and(|out| out.uncounted)
    }

    /// How many bytes are not yet taken by this machine's network stack.
    pub(crate) fn unsent(&self) -> usize {
        self.wire.out.as_ref().map_or(0, |out| out.bytes.len() - out.written)
    }

    /// The time, in milliseconds, at which the peer is too slow; `None` if it does not make us wait.
    pub(crate) fn too_slow_at(&self) -> Option<u64> {
        Some(self.wire.out.as_ref()?.pace?.until())
    }

    /// Writes until all is written, then gives the buffer back to the allocator. A peer that makes us wait may receive
    /// nothing for `timeout`; `now` gives the time in milliseconds.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        timeout: Duration,
        now: impl Fn() -> u64,
    ) -> Poll<io::Result<()>> {
        let Wire { tcp, out, .. } = &mut self.wire;
        let Some(Outgoing { bytes, written, pace, .. }) = out.as_deref_mut() else { return Poll::Ready(Ok(())) };
        while *written < bytes.len() {
            match tcp.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    pace.get_or_insert_with(|| Pace::begin(now(), timeout));
                    return Poll::Pending;
                }
            }
            match tcp.try_write(&bytes[*written..]) {
                Ok(n) => {
                    *written += n;
                    if let Some(pace) = pace {
                        pace.took(now(), n);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        *out = None;
        Poll::Ready(Ok(()))
    }

    /// Reads and drops what the peer still sends after the close frame, until it ends: closing with unread bytes would
    /// reset the connection, and the peer might never see why. Gives up after [`READS_AFTER_CLOSE`] reads.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut sink = [0; 1024];
        for _ in 0..READS_PER_POLL {
            if ready!(self.wire.tcp.poll_read_ready(cx)).is_err() {
                return Poll::Ready(());
            }
            match self.wire.tcp.try_read(&mut sink) {
                Ok(0) => return Poll::Ready(()),
                Ok(_) if self.wire.reads >= READS_AFTER_CLOSE => return Poll::Ready(()),
                Ok(_) => self.wire.reads += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Tells the peer that nothing more comes. Call when all is written.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let tcp = std::pin::Pin::new(&mut self.wire.tcp);
        tokio::io::AsyncWrite::poll_shutdown(tcp, cx).map(|_| ())
    }
}

impl Wire {
    fn out(&mut self) -> &mut Outgoing {
        self.out.get_or_insert_default()
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads_left = self.reads_left.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
        let read = self.tcp.try_read(buf)?;
        self.taken = self.taken.wrapping_add(read as u32);
        self.reads += self.heads.pass(&mut buf[..read]).max(u32::from(read > 0));
        Ok(read)
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.out().bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn config(message_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        // Pongs and close frames are passed on at once into `out`, which the connection bounds.
        .write_buffer_size(0)
        .max_write_buffer_size(1024)
        .max_message_size(Some(message_max))
        .max_frame_size(Some(message_max))
}

/// The bytes of a masked frame with `payload` bytes of payload, when its length is written in the shortest way.
fn shortest_frame(payload: usize) -> u64 {
    let head = match payload {
        0..=125 => 6,
        126..=0xFFFF => 8,
        _ => 14,
    };
    head + payload as u64
}

fn broken(error: &Error) -> Broken {
    match error {
        Error::Capacity(_) => Broken::TooBig,
        Error::Utf8(_) => Broken::NotUtf8,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Broken::Gone,
        Error::Protocol(_) => Broken::Protocol,
        _ => Broken::Gone,
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        peer.set_nodelay(true).unwrap();
        (Socket::new(listener.accept().await.unwrap().0, &[], 100_000, Frames::Text), peer)
    }

    /// A masked text frame of up to 65,535 bytes, with a mask of zero.
    fn frame(payload: &str) -> Vec<u8> {
        let mut frame = vec![0x81];
        match payload.len() {
            len @ 0..=125 => frame.push(0x80 | len as u8),
            len => frame.extend([0xFE, (len >> 8) as u8, len as u8]),
        }
        frame.extend([0; 4]);
        frame.extend(payload.as_bytes());
        frame
    }

    async fn next(socket: &mut Socket) -> String {
        let incoming = poll_fn(|cx| {
            socket.begin_poll();
            socket.poll_read(cx)
        });
        match incoming.await {
            Ok(Incoming::Text(text)) => text.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Polls until all `sent` bytes have been taken, and nothing more is there.
    async fn drained(socket: &mut Socket, sent: u32) {
        poll_fn(|cx| {
            socket.begin_poll();
            assert!(socket.poll_read(cx).is_pending());
            if socket.wire.taken == sent { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    #[tokio::test]
    async fn a_stretched_buffer_is_given_back_but_never_with_a_part_of_a_frame_in_it() {
        let (mut socket, mut peer) = pair().await;
        let (large, small) = ("x".repeat(5000), "y".repeat(30));
        let first = frame(&large);
        let second = frame(&small);
        let (head, tail) = second.split_at(4);
        peer.write_all(&first).await.unwrap();
        peer.write_all(head).await.unwrap();
        assert_eq!(next(&mut socket).await, large);
        drained(&mut socket, (first.len() + head.len()) as u32).await;
        assert!(socket.stretched, "the part of a frame must stay");
        peer.write_all(tail).await.unwrap();
        assert_eq!(next(&mut socket).await, small);
        drained(&mut socket, (first.len() + head.len() + tail.len()) as u32).await;
        assert!(!socket.stretched, "now it is empty");
        peer.write_all(&frame("after")).await.unwrap();
        assert_eq!(next(&mut socket).await, "after");
    }

    #[tokio::test]
    async fn an_idle_socket_holds_no_write_buffer() {
        let (mut socket, _peer) = pair().await;
        for len in [1, 125, 126, 65_535, 65_536] {
            let before = socket.unsent();
            socket.frame(|out| out.extend(std::iter::repeat_n(b'x', len)));
            let header = socket.unsent() - before - len;
            assert_eq!(header, [2, 4, 10][usize::from(len > 125) + usize::from(len > 65_535)]);
        }
        poll_fn(|cx| socket.poll_flush(cx, Duration::from_secs(10), || 0)).await.unwrap();
        assert_eq!((socket.unsent(), socket.wire.out.is_none()), (0, true));
    }
}
