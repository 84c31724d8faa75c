//! A WebSocket on a bare connection, polled by one task.
//!
//! ```text
//!   Link ──▶ tungstenite's context (frames, masks, limits, pongs, close) ──▶ Incoming
//!   Link ◀── our frames, and the context's pongs and close
//! ```
//!
//! Invariants:
//! - Every byte to the peer passes through its [`Link`], in order; nothing is ever written in the middle of a frame.
//! - An idle socket has no context and no buffer. Both are made when bytes come, and dropped between two messages.
//! - Reading never waits for writing: messages of a peer that does not read are still received.
//!
//! tungstenite's context is driven directly rather than through its stream wrapper: that saves two waker proxies per
//! connection, and the wrapper's write buffer, which never shrinks.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::task::{Context, Poll, ready};

use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes, error::ProtocolError};

use crate::net::frame_heads::{BAD_GATEWAY, FrameHeads};
use crate::net::link::Link;
use crate::net::maybe_tls::MaybeTls;

/// The bytes of the reader's buffer: room for a pong or an `ack`. A larger frame stretches the buffer while it is read.
pub(crate) const READ_BUFFER: usize = 256;

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
    /// Reads and checks frames. `None` between two messages, until bytes come or the socket is closed.
    context: Option<Box<WebSocketContext>>,
    wire: Wire,
    frames: Frames,
    /// The most bytes of a message and of a frame.
    message_max: usize,
    /// Whether the context still holds bytes that came before the upgrade; the stream does not become ready for these.
    early: bool,
}

#[derive(Debug)]
struct Wire {
    link: Link,
    heads: FrameHeads,
}

impl Socket {
    /// Makes the WebSocket of a connection that was upgraded. `early` holds bytes of frames that came before the
    /// upgrade was done. No message or frame of the peer may exceed `message_max` bytes. Frames to the peer are of the
    /// kind `frames`.
    pub(crate) fn new(stream: MaybeTls, early: &[u8], message_max: usize, frames: Frames) -> Self {
        let (mut heads, mut read) = (FrameHeads::default(), early.to_vec());
        let begun = heads.pass(&mut read);
        let reads = begun.max(early.len().div_ceil(READ_BUFFER) as u32);
        let context = match early {
            [] => None,
            _ => {
                let config = Some(config(message_max));
                Some(Box::new(WebSocketContext::from_partially_read(read, Role::Server, config)))
            }
        };
        let wire = Wire { link: Link::new(stream, reads), heads };
        Self { context, wire, frames, message_max, early: !early.is_empty() }
    }

    /// What reads and checks frames, and what it reads from and writes to.
    fn context(&mut self) -> (&mut WebSocketContext, &mut Wire) {
        let new = || Box::new(WebSocketContext::new(Role::Server, Some(config(self.message_max))));
        (self.context.get_or_insert_with(new), &mut self.wire)
    }

    /// The connection below, with what waits to be written.
    pub(crate) fn link(&self) -> &Link {
        &self.wire.link
    }

    /// The connection below, with what waits to be written.
    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.wire.link
    }

    /// Limits every message and frame to `message_max` bytes, from now on.
    pub(crate) fn allow(&mut self, message_max: usize) {
        self.message_max = message_max;
        if let Some(context) = &mut self.context {
            context.set_config(|old| *old = config(message_max));
        }
    }

    /// Reads the next message. Pending if none is complete, or if this poll has used its read calls; then the task is
    /// woken again.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Incoming, Broken>> {
        loop {
            // Asking for readiness first saves a system call on every wake that was not about reading.
            if !self.early && ready!(self.wire.link.poll_readable(cx)).is_err() {
                return Poll::Ready(Err(Broken::Gone));
            }
            let (context, wire) = self.context();
            match context.read(wire) {
                Ok(message) => return Poll::Ready(Ok(self.sort(message))),
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.early = false;
                    self.release();
                    if self.wire.link.reads_left == 0 {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Err(error) => return Poll::Ready(Err(broken(&error))),
            }
        }
    }

    /// Drops the context if it holds nothing. To be called when it has asked for more bytes than there are: then its
    /// buffer holds no whole frame.
    fn release(&mut self) {
        if self.wire.heads.is_between_messages() {
            self.context.take_if(|context| context.can_write());
        }
    }

    fn sort(&mut self, message: Message) -> Incoming {
        match message {
            Message::Text(text) => Incoming::Text(text),
            Message::Binary(bytes) => Incoming::Binary(bytes),
            Message::Frame(_) => unreachable!("only a writer is given bare frames"),
            Message::Ping(_) | Message::Pong(_) => {
                // Moves the pong to the bytes that wait in the link, which cannot fail.
                let (context, wire) = self.context();
                let _ = context.flush(wire);
                Incoming::Control
            }
            Message::Close(_) => {
                self.answer_close();
                Incoming::Goodbye
            }
        }
    }

    /// Moves the answer to a close frame to the bytes that wait in the link.
    fn answer_close(&mut self) {
        let begins_at = self.wire.link.bytes().len();
        // The flush always fails with an error which says that the connection is closed; this is known here.
        let (context, wire) = self.context();
        let _ = context.flush(wire);
        if self.wire.heads.is_bad_gateway()
            && let Some(code) = self.wire.link.bytes().get_mut(begins_at + 2..begins_at + 4)
        {
            code.copy_from_slice(&BAD_GATEWAY.to_be_bytes());
        }
    }

    /// Appends one frame: `write` appends the payload to the vector that it is given.
    pub(crate) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let kind = self.frames as u8;
        let out = self.wire.link.bytes();
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

    /// Appends a close frame with this code and reason. Nothing may follow it.
    pub(crate) fn close(&mut self, code: u16, reason: Cow<'static, str>) {
        let reason = match reason {
            Cow::Borrowed(text) => Utf8Bytes::from_static(text),
            Cow::Owned(text) => text.into(),
        };
        let frame = CloseFrame { code: code.into(), reason };
        // Closing fails only if the peer has closed already.
        let (context, wire) = self.context();
        let _ = context.close(wire, Some(frame));
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.link.try_read(buf)?;
        self.link.reads += self.heads.pass(&mut buf[..read]).max(u32::from(read > 0));
        Ok(read)
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.link.bytes().extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn config(message_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        // Pongs and close frames are passed on at once to the link, whose bytes the connection bounds.
        .write_buffer_size(0)
        .max_write_buffer_size(1024)
        .max_message_size(Some(message_max))
        .max_frame_size(Some(message_max))
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
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        peer.set_nodelay(true).unwrap();
        (Socket::new(MaybeTls::Plain(listener.accept().await.unwrap().0), &[], 100_000, Frames::Text), peer)
    }

    /// A masked text frame of up to 65,535 bytes, with a mask of zero.
    fn frame(payload: &str) -> Vec<u8> {
        frame_of(0x81, payload)
    }

    /// A masked frame with this first byte, which has the opcode and says whether the frame ends its message.
    fn frame_of(first: u8, payload: &str) -> Vec<u8> {
        let mut frame = vec![first];
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
            socket.wire.link.begin_poll();
            socket.poll_read(cx)
        });
        match incoming.await {
            Ok(Incoming::Text(text)) => text.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Polls, at least once, until what was taken ends between messages, or within one. Then nothing more is there.
    async fn drained(socket: &mut Socket, between: bool) {
        poll_fn(|cx| {
            socket.wire.link.begin_poll();
            assert!(socket.poll_read(cx).is_pending());
            if socket.wire.heads.is_between_messages() == between { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    #[tokio::test]
    async fn i18_the_reader_is_dropped_between_messages_but_never_with_a_part_of_a_frame_in_it() {
        let (mut socket, mut peer) = pair().await;
        let (large, small) = ("x".repeat(5000), "y".repeat(30));
        let first = frame(&large);
        let second = frame(&small);
        let (head, tail) = second.split_at(4);
        peer.write_all(&first).await.unwrap();
        peer.write_all(head).await.unwrap();
        assert_eq!(next(&mut socket).await, large);
        drained(&mut socket, false).await;
        assert!(socket.context.is_some(), "the part of a frame must stay");
        peer.write_all(tail).await.unwrap();
        assert_eq!(next(&mut socket).await, small);
        drained(&mut socket, true).await;
        assert!(socket.context.is_none(), "now it is empty");
        peer.write_all(&frame("after")).await.unwrap();
        assert_eq!(next(&mut socket).await, "after");
    }

    #[tokio::test]
    async fn the_reader_is_dropped_whatever_frames_have_stretched_its_buffer() {
        let (mut socket, mut peer) = pair().await;
        let (half, empty) = ("x".repeat(5000), "");
        peer.write_all(&[frame_of(0x01, &half), frame_of(0x00, empty)].concat()).await.unwrap();
        drained(&mut socket, false).await;
        peer.write_all(&frame_of(0x80, &half)).await.unwrap();
        assert_eq!(next(&mut socket).await, half.repeat(2));
        drained(&mut socket, true).await;
        assert!(socket.context.is_none(), "a message of several frames is done with");
        // A length of five that is written as one of more than 125.
        let long = [&[0x81, 0xFE, 0, 5, 0, 0, 0, 0], "later".as_bytes()].concat();
        peer.write_all(&[frame(&half), long].concat()).await.unwrap();
        assert_eq!((next(&mut socket).await, next(&mut socket).await), (half, "later".to_owned()));
        drained(&mut socket, true).await;
        assert!(socket.context.is_none(), "a length may be written in another way than the shortest");
    }

    #[tokio::test]
    async fn an_idle_socket_holds_no_write_buffer() {
        let (mut socket, _peer) = pair().await;
        for len in [1, 125, 126, 65_535, 65_536] {
            let before = socket.wire.link.unsent();
            socket.frame(|out| out.extend(std::iter::repeat_n(b'x', len)));
            let header = socket.wire.link.unsent() - before - len;
            assert_eq!(header, [2, 4, 10][usize::from(len > 125) + usize::from(len > 65_535)]);
        }
        poll_fn(|cx| socket.wire.link.poll_flush(cx, Duration::from_secs(10), || 0)).await.unwrap();
        assert_eq!((socket.wire.link.unsent(), socket.wire.link.is_empty()), (0, true));
    }
}
