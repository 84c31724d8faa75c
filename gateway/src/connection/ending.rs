//! The end of a connection: the clean-up at the stores, and meanwhile the last bytes to the peer.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::deadlines::{Deadlines, NEVER};
use super::{Boxed, Connection, End, cleanup};
use crate::net::transport::Transport;
use crate::node::metrics::Ended;
use crate::protocol::Close;

/// The most milliseconds for the goodbye: to write what waits, and to receive what the peer still sends.
const GOODBYE_MS: u64 = 1000;

/// What a connection that is ending still has to do.
pub(super) struct Ending {
    cleanup: Option<Boxed<()>>,
    socket: SocketEnd,
}

/// The steps at the socket: write what waits, say that nothing more comes, read until the peer ends.
enum SocketEnd {
    Flush,
    Shutdown,
    Listen,
    Done,
}

impl End {
    /// How this end is counted.
    fn ended(&self) -> Ended {
        match self {
            Self::Close(close) => Ended::Closed(*close),
            Self::BadToken(_) => Ended::Closed(Close::InvalidToken),
            Self::Goodbye => Ended::Goodbye,
            Self::Gone => Ended::Gone,
        }
    }
}

impl Connection {
    pub(super) fn end(&mut self, end: End) {
        self.slot.end();
        self.shared.metrics.ends.of(end.ended()).inc();
        self.log_end(end.ended());
        let socket = match end {
            // What waits to be sent would arrive after the token has expired.
            End::Close(Close::Expired) if self.transport.link().unsent() > 0 => SocketEnd::Done,
            End::Close(close) => {
                self.say_goodbye(close, "");
                SocketEnd::Flush
            }
            End::BadToken(why) => {
                self.say_goodbye(Close::InvalidToken, why);
                SocketEnd::Flush
            }
            End::Goodbye => SocketEnd::Flush,
            End::Gone => SocketEnd::Done,
        };
        (self.reading, self.watching) = (None, None);
        let acked = std::mem::take(&mut self.channels).acked();
        self.waiting = VecDeque::new();
        self.deadlines = Deadlines::until_connect(NEVER);
        self.deadlines.goodbye = self.shared.uptime.elapsed_ms() + GOODBYE_MS;
        let (shared, slot) = (self.shared.clone(), self.slot.clone());
        let cleanup = cleanup::clean_up(shared, slot, self.who.take(), acked, self.answering.take(), self.moves);
        self.ending = Some(Box::new(Ending { cleanup: Some(Box::pin(cleanup)), socket }));
    }

    /// Tells the peer the code and the reason, which ends with `why` if that is not empty. Nothing may follow it.
    fn say_goodbye(&mut self, close: Close, why: &'static str) {
        let reason = close.reason(why);
        match &mut self.transport {
            Transport::Socket(socket) => socket.close(close.code(), reason),
            Transport::Stream(stream) => stream.frame(|out| self.format.disconnect(out, close, &reason)),
        }
    }

    pub(super) fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ending = self.ending.as_mut().expect("only an ending connection gets here");
        if let Some(cleanup) = &mut ending.cleanup
            && cleanup.as_mut().poll(cx).is_ready()
        {
            ending.cleanup = None;
        }
        if self.poll_socket_end(cx).is_pending() && self.poll_timer(cx).is_pending() {
            return Poll::Pending;
        }
        let ending = self.ending.as_mut().expect("it is still ending");
        ending.socket = SocketEnd::Done;
        self.deadlines.goodbye = NEVER;
        if ending.cleanup.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_socket_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ending = self.ending.as_mut().expect("only an ending connection gets here");
        loop {
            ending.socket = match ending.socket {
                SocketEnd::Flush => match ready!(self.transport.link_mut().poll_flush(cx, Duration::MAX, || 0)) {
                    Ok(()) => SocketEnd::Shutdown,
                    Err(_) => SocketEnd::Done,
                },
                SocketEnd::Shutdown => {
                    ready!(self.transport.link_mut().poll_shutdown(cx));
                    SocketEnd::Listen
                }
                SocketEnd::Listen => {
                    ready!(self.transport.link_mut().poll_end(cx));
                    SocketEnd::Done
                }
                SocketEnd::Done => return Poll::Ready(()),
            };
        }
    }
}
