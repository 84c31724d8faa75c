//! An HTTP answer that goes on for as long as a session. Where WebSocket is blocked, this answer carries the frames to
//! the device.
//!
//! ```text
//!   first message (in the request), then the mailbox ──▶ Incoming
//!   Link ◀── the head of the answer ◀── frames: a line each, an event each, or as they are
//! ```
//!
//! The answer ends with its connection, and has no length and no chunks: so it passes proxies that speak HTTP/1.0, and
//! a frame is one write here.

use std::task::{Context, Poll};

use axum::body::Bytes;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::net::link::Link;
use crate::net::mailboxes::Mailbox;
use crate::net::maybe_tls::MaybeTls;
use crate::net::socket::{Broken, Incoming, READ_BUFFER};

/// How frames stand in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Text, each frame ending with a line feed.
    Lines,
    /// Binary frames, each of which contains its length.
    Bytes,
    /// Text as events of `text/event-stream`.
    Events,
    /// Complete events of `text/event-stream`, for a device that sends nothing after its request.
    OneWay,
}

/// A request that an endless answer is begun for. A response that begins one carries it as an extension.
#[derive(Debug, Clone)]
pub(crate) struct Begin {
    /// How frames stand in the answer.
    pub(crate) framing: Framing,
    /// The messages that came with the request.
    pub(crate) first: Bytes,
}

/// One endless answer, and the messages of the device that gets it.
pub(crate) struct Stream {
    link: Link,
    framing: Framing,
    first: Option<Bytes>,
    mailbox: Mailbox,
}

impl Stream {
    /// Goes on with a connection whose request was read. `head` is the head of the answer; it waits to be written.
    pub(crate) fn new(stream: MaybeTls, head: &[u8], begin: Begin, mailbox: Mailbox) -> Self {
        let mut link = Link::new(stream, 0);
        link.bytes().extend_from_slice(head);
        Self { link, framing: begin.framing, first: Some(begin.first), mailbox }
    }

    /// How frames stand in the answer.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// The connection below, with what waits to be written.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The connection below, with what waits to be written.
    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The number of the session, by which messages of the device find its mailbox.
    pub(crate) fn number(&self) -> u128 {
        self.mailbox.number()
    }

    /// Takes the next message of the device. What comes after the request on the same connection is dropped.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Incoming, Broken>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(self.sort(first));
        }
        if let Poll::Ready(message) = self.mailbox.poll_take(cx) {
            return Poll::Ready(self.sort(message));
        }
        while let Some(left) = self.link.reads_left.checked_sub(1) {
            match self.link.poll_skip(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Broken::Gone)),
                Poll::Ready(Ok(_)) => (self.link.reads_left, self.link.reads) = (left, self.link.reads + 4),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn sort(&mut self, message: Bytes) -> Result<Incoming, Broken> {
        self.link.reads += message.len().div_ceil(READ_BUFFER).max(1) as u32;
        match self.framing {
            Framing::Bytes => Ok(Incoming::Binary(message)),
            Framing::Lines | Framing::Events | Framing::OneWay => {
                Utf8Bytes::try_from(message).map(Incoming::Text).map_err(|_| Broken::NotUtf8)
            }
        }
    }

    /// Appends one frame: `write` appends the payload to the vector that it is given.
    pub(crate) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let framing = self.framing;
        let out = self.link.bytes();
        let start = out.len();
        match framing {
            Framing::Bytes | Framing::OneWay => write(out),
            Framing::Lines => {
                write(out);
                out.push(b'\n');
            }
            Framing::Events => {
                out.extend_from_slice(FIELD);
                write(out);
                each_line_as_a_field(out, start + FIELD.len());
                out.extend_from_slice(b"\n\n");
            }
        }
    }
}

/// The field of an event that holds a line of its text.
const FIELD: &[u8] = b"data: ";

/// Puts [`FIELD`] in front of each line after the first, in the bytes of `out` from `start` on.
fn each_line_as_a_field(out: &mut Vec<u8>, start: usize) {
    if !out[start..].contains(&b'\n') {
        return;
    }
    let lines = out.split_off(start);
    for (n, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if n > 0 {
            out.push(b'\n');
            out.extend_from_slice(FIELD);
        }
        out.extend_from_slice(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_several_lines_has_a_field_for_each() {
        let mut out = b"data: {\"a\":1}\n{\"b\":2}".to_vec();
        each_line_as_a_field(&mut out, FIELD.len());
        assert_eq!(out, b"data: {\"a\":1}\ndata: {\"b\":2}");
    }
}
