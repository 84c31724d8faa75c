//! What carries the messages of one session: a WebSocket, or an endless answer where WebSocket is blocked.

use std::task::{Context, Poll};

use crate::net::link::Link;
use crate::net::socket::{Broken, Incoming, Socket};
use crate::net::stream::Stream;

/// The carrier of one session's messages, polled by one task.
pub(crate) enum Transport {
    /// A WebSocket, which most sessions have.
    Socket(Socket),
    /// An endless answer. It is in a box, so that it does not enlarge the memory of a WebSocket.
    Stream(Box<Stream>),
}

impl Transport {
    /// The connection below, with what waits to be written.
    pub(crate) fn link(&self) -> &Link {
        match self {
            Self::Socket(socket) => socket.link(),
            Self::Stream(stream) => stream.link(),
        }
    }

    /// The connection below, with what waits to be written.
    pub(crate) fn link_mut(&mut self) -> &mut Link {
        match self {
            Self::Socket(socket) => socket.link_mut(),
            Self::Stream(stream) => stream.link_mut(),
        }
    }

    /// The number of the session, if its device sends each message by a request of its own.
    pub(crate) fn number(&self) -> Option<u128> {
        match self {
            Self::Socket(_) => None,
            Self::Stream(stream) => Some(stream.number()),
        }
    }

    /// Limits every message to `message_max` bytes, from now on. A message that comes by a request was limited at that
    /// request.
    pub(crate) fn allow(&mut self, message_max: usize) {
        if let Self::Socket(socket) = self {
            socket.allow(message_max);
        }
    }

    /// Reads the next message. Pending if there is none, or if this poll has used its read calls; then the task is
    /// woken again.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Incoming, Broken>> {
        match self {
            Self::Socket(socket) => socket.poll_read(cx),
            Self::Stream(stream) => stream.poll_read(cx),
        }
    }

    /// Appends one frame: `write` appends the payload to the vector that it is given.
    pub(crate) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::Socket(socket) => socket.frame(write),
            Self::Stream(stream) => stream.frame(write),
        }
    }
}
