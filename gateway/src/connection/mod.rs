//! One connection: the task that moves bytes, wakes and deadlines between the transport, the stores and the rules.
//!
//! ```text
//!   transport ──lines──▶ waiting ──one at a time──▶ answering (a verb's file) ──▶ reply
//!   slot ──wake bits──▶ watching ──news of items──▶ transport
//!   slot ──wake bits──▶ channels ──whose turn──▶ subscription (pure) ──Ask──▶ reading
//!                                     reading ──Found──▶ subscription ──Push──▶ transport
//!   timer ──▶ pings, pongs, expiry, a look at the log now and then
//! ```
//!
//! The task is this struct itself, polled. It holds no rules except the order in which things are done.
//!
//! Invariants:
//! - Commands are carried out one after another, in the order they came; pongs and pushes do not wait for them.
//! - Everything here is bounded: commands waiting, one answer and one reading in flight, however many channels, unsent
//!   bytes up to `write_buffer_max_bytes` plus one reply and three slices: what was being read when a subscribe came,
//!   what that begins with, and news of items that are watched (I18). All of them are counted in the user's share of
//!   the node's [budget](crate::limits::budget), and while that is full no command is carried out whose reply might
//!   have to wait.
//! - Deadlines are looked at before anything is sent: no frame is sent after the token and its grace.
//! - A peer is closed for a missing `connect` or pong only after everything that has come from the peer was read.
//! - When a connection ends, its seat is left, its positions are saved and its claim is released. If the task is
//!   dropped, only the seat is left.
//!
//! An idle, authenticated, subscribed session takes 1.8 KB of memory, measured over 10,000 of them with their pool
//! entries (`cargo bench -p feedgate-tests --bench sessions`). This struct takes 632 bytes of it, the reader's buffer
//! 256, the timer 112, the slot 56 and the identity 104. The rest is the runtime's registration of the socket, the
//! task's frame and what the allocator rounds up to.

mod backoff;
mod bodies;
mod channels;
mod cleanup;
mod commands;
mod connect;
mod counting;
mod deadlines;
mod ending;
mod history;
mod log;
mod outcome;
mod presence;
mod reading;
mod refresh;
mod rpc_ack;
mod rpc_page;
mod rpc_seen;
mod shared;
mod subscribe;
mod turns;
mod watching;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use self::channels::Channels;
use self::deadlines::{Deadlines, NEVER};
use self::ending::Ending;
use self::outcome::Outcome;
use self::reading::Reading;
pub(crate) use self::shared::Shared;
use self::turns::Subscribing;
use self::watching::Watching;
use crate::limits::allowance::{Allowance, Rate};
use crate::net::address::shares::Stay;
use crate::net::socket::{Broken, Incoming};
use crate::net::transport::Transport;
use crate::node::identity::Identity;
use crate::node::metrics::Carrier;
use crate::node::slot::{Slot, Wake};
use crate::protocol::{Close, Command, Format, Malformed, Message, Verb, json, protobuf};

/// Nothing more is read while this many commands wait behind the command in flight. A single frame may bring more
/// commands, up to the allowance.
const WAITING_MAX: usize = 16;

/// One of this many looks at the log also looks at what was seen, in case the message about it was lost.
const SEEN_EVERY: u64 = 16;

/// The most rounds of work per poll before other tasks get their turn.
const ROUNDS: usize = 32;

/// The most time for a command or a read, its wait for a permit to read included. A subscribe may take as long
/// again if another channel's read is in flight.
const TIMEOUT: Duration = Duration::from_secs(10);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A command in flight; gives its id and its outcome.
pub(crate) type Answering = Boxed<(u32, Outcome)>;

/// The parts that a connection is made from.
pub(crate) struct Arrival {
    /// What carries the messages.
    pub(crate) transport: Transport,
    /// How the messages are written.
    pub(crate) format: Format,
    /// When the connection was asked for, in milliseconds of the node's clock: the time for `connect` counts from here.
    pub(crate) asked_ms: u64,
    /// The slot of the connection in the pool.
    pub(crate) slot: Arc<Slot>,
    /// What the connection counts for at its address; `None` if no limit per address holds for it.
    pub(crate) stay: Option<Box<Stay>>,
}

/// One connection of a device, from its upgrade to its end.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    transport: Transport,
    format: Format,
    /// Whether subscriptions that offer numbers for channels get them.
    numbers: bool,
    who: Option<Arc<Identity>>,
    channels: Channels,
    /// The items that the device watches.
    watching: Option<Box<Watching>>,
    subscribing: Option<Box<Subscribing>>,
    answering: Option<Answering>,
    /// Whether the command in flight may move the device's position.
    moves: bool,
    /// The read of the channel whose turn it is.
    reading: Option<Boxed<feedgate_common::error::Result<Reading>>>,
    waiting: VecDeque<Command>,
    /// The allowance for commands and frames.
    commands: Allowance,
    /// The allowance for reads of up to 256 bytes.
    reads: Allowance,
    deadlines: Deadlines,
    timer: Pin<Box<Sleep>>,
    ending: Option<Box<Ending>>,
    stay: Option<Box<Stay>>,
}

/// Why a connection ends.
enum End {
    /// The server closes it with this code.
    Close(Close),
    /// The server closes it because of its token; the text says why.
    BadToken(&'static str),
    /// The peer has sent a close frame.
    Goodbye,
    /// The stream is broken.
    Gone,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, arrival: Arrival) -> Self {
        let Arrival { transport, format, asked_ms, slot, stay } = arrival;
        let settings = &shared.settings.now();
        shared.metrics.connections.of(Carrier::of(&transport)).inc();
        let connect_at = asked_ms + u64::from(settings.connect_within_secs) * 1000;
        Self {
            transport,
            format,
            numbers: false,
            slot,
            who: None,
            channels: Channels::default(),
            watching: None,
            subscribing: None,
            answering: None,
            moves: false,
            reading: None,
            waiting: VecDeque::new(),
            commands: Allowance::default(),
            reads: Allowance::default(),
            deadlines: Deadlines::until_connect(connect_at),
            timer: Box::pin(tokio::time::sleep_until(shared.uptime.at(connect_at))),
            ending: None,
            shared,
            stay,
        }
    }

    /// Does rounds of work until nothing is left to do now. Ready when the connection is to end.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.slot.register(cx.waker());
        self.transport.link_mut().begin_poll();
        let mut timer_has_fired = false;
        for _ in 0..ROUNDS {
            match self.round(cx) {
                Err(end) => return Poll::Ready(end),
                Ok(true) => continue,
                Ok(false) => {}
            }
            // The timer fires after the runtime has asked the kernel what has come. This round has found nothing of it.
            if timer_has_fired && let Some(close) = self.overdue() {
                return Poll::Ready(End::Close(close));
            }
            if self.poll_timer(cx).is_pending() {
                return Poll::Pending;
            }
            timer_has_fired = true;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready when a deadline has come.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.deadlines.next(self.is_connecting(), self.hears());
        let at = if due == NEVER { Instant::now() + Duration::from_secs(3600) } else { self.shared.uptime.at(due) };
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().poll(cx)
    }

    /// Does everything that is ready, in this order. False if nothing was.
    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut worked = self.keep_deadlines()?;
        if let Some(close) = self.slot.asked_to_close() {
            return Err(End::Close(close));
        }
        if let Some(answering) = &mut self.answering
            && let Poll::Ready((id, outcome)) = answering.as_mut().poll(cx)
        {
            self.answering = None;
            self.conclude(id, outcome)?;
            worked = true;
        }
        if let Some(reading) = &mut self.reading
            && let Poll::Ready(read) = reading.as_mut().poll(cx)
        {
            self.reading = None;
            self.found(read)?;
            worked = true;
        }
        worked |= self.next_command()?;
        worked |= self.open()?;
        if let Some(why) = self.slot.take_wake() {
            self.channels.wake(why);
            if let Some(watching) = self.watching.as_mut().filter(|_| why.is_around()) {
                watching.wake();
            }
        }
        let held_up = self.waiting.front().is_some_and(|next| !self.has_room_for(&next.verb));
        match self.poll_flush(cx) {
            // A reply that found no room may have room now.
            Poll::Ready(Ok(())) => worked |= held_up | self.take_turns()? | self.tell_news(),
            Poll::Ready(Err(_)) => return Err(End::Gone),
            Poll::Pending => {}
        }
        if self.hears() {
            let incoming = self.transport.poll_read(cx);
            self.charge_reads()?;
            if let Poll::Ready(incoming) = incoming {
                self.heard(incoming)?;
                worked = true;
            }
        }
        Ok(worked)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let Shared { settings, uptime, budget, .. } = &*self.shared;
        let flushed = self.transport.link_mut().poll_flush(cx, settings.silence, || uptime.elapsed_ms());
        if let (Poll::Pending, Some(who)) = (&flushed, &self.who) {
            self.transport.link_mut().count(|| budget.of(&who.user.id));
        }
        self.deadlines.slow = self.transport.link().too_slow_at().unwrap_or(NEVER);
        flushed
    }

    fn keep_deadlines(&mut self) -> Result<bool, End> {
        let now = self.shared.uptime.elapsed_ms();
        let hears = self.hears();
        if !self.deadlines.are_due(now, hears) {
            return Ok(false);
        }
        if now >= self.deadlines.expiry {
            return Err(End::Close(Close::Expired));
        }
        if now >= self.deadlines.slow {
            return Err(End::Close(Close::Slow));
        }
        let settings = &self.shared.settings.now();
        if self.deadlines.is_ping_due(now, hears) {
            self.transport.frame(|out| out.extend_from_slice(self.format.ping()));
            self.deadlines.pinged(now, settings);
            if self.format == Format::OneWay {
                // Such a client cannot answer; the kernel finds out if it is gone.
                self.deadlines.ponged(settings);
            }
        }
        if now >= self.deadlines.reread {
            self.deadlines.reread = now + u64::from(settings.reread_interval_secs) * 1000;
            let round = now / (u64::from(settings.reread_interval_secs) * 1000) + self.slot.connection;
            self.channels.wake(if round.is_multiple_of(SEEN_EVERY) { Wake::MISSED } else { Wake::LOOK });
        }
        Ok(true)
    }

    /// Whether what comes is read: not while as many commands wait as may.
    fn hears(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// The code to close with if the peer has not sent in time what it must send. Call after everything that has come
    /// was read: a process that stood still for a while finds in its sockets what came in time.
    fn overdue(&mut self) -> Option<Close> {
        let (now, is_connecting, hears) = (self.shared.uptime.elapsed_ms(), self.is_connecting(), self.hears());
        self.deadlines.overdue(now, is_connecting, hears, &self.shared.settings.now())
    }

    fn heard(&mut self, incoming: Result<Incoming, Broken>) -> Result<(), End> {
        match incoming {
            Ok(Incoming::Text(text)) if self.format != Format::Protobuf => self.lines(&text),
            Ok(Incoming::Binary(bytes)) if self.format == Format::Protobuf => self.messages(&bytes),
            Ok(Incoming::Text(_) | Incoming::Binary(_)) => Err(End::Close(Close::Unsupported)),
            Ok(Incoming::Control) => {
                self.charge()?;
                if self.is_clogged() { Err(End::Close(Close::Slow)) } else { Ok(()) }
            }
            Ok(Incoming::Goodbye) => Err(End::Goodbye),
            Err(Broken::TooBig) => Err(End::Close(Close::TooBig)),
            Err(Broken::NotUtf8) => Err(End::Close(Close::NotUtf8)),
            Err(Broken::Protocol) => Err(End::Close(Close::Protocol)),
            Err(Broken::Gone) => Err(End::Gone),
        }
    }

    /// Takes in the lines of a text frame. A frame without one counts as a command, too.
    fn lines(&mut self, text: &str) -> Result<(), End> {
        if text.is_empty() {
            return self.charge();
        }
        for line in text.lines() {
            self.charge()?;
            if !line.trim().is_empty() {
                self.message(json::decode(line, &self.shared.reads.feeds.named()))?;
            }
        }
        Ok(())
    }

    /// Takes in the messages of a binary frame. A frame without one counts as a command, too.
    fn messages(&mut self, frame: &[u8]) -> Result<(), End> {
        if frame.is_empty() {
            return self.charge();
        }
        for message in protobuf::messages(frame) {
            self.charge()?;
            self.message(message.and_then(|message| protobuf::decode(message, &self.shared.reads.feeds.named())))?;
        }
        Ok(())
    }

    fn message(&mut self, message: Result<Message, Malformed>) -> Result<(), End> {
        match message {
            Ok(Message::Pong) if self.deadlines.ponged(&self.shared.settings.now()) => Ok(()),
            Ok(Message::Send) if self.who.is_some() || self.is_connecting() => Ok(()),
            Ok(Message::Command(command)) => {
                self.waiting.push_back(command);
                Ok(())
            }
            Ok(Message::Pong | Message::Send) | Err(Malformed) => Err(End::Close(Close::BadRequest)),
        }
    }

    /// Whether the first command, which has to be `connect`, waits or is being answered.
    fn is_connecting(&self) -> bool {
        self.answering.is_some() || !self.waiting.is_empty()
    }

    fn charge(&mut self) -> Result<(), End> {
        let now = self.shared.uptime.elapsed_ms();
        let fair = self.commands.take(1, now, Rate::twice(self.shared.settings.now().commands_per_sec));
        if fair { Ok(()) } else { Err(End::Close(Close::TooManyRequests)) }
    }

    /// Whether there is memory for the reply to such a command: for a large one only if nothing else waits to be sent.
    fn has_room_for(&self, verb: &Verb) -> bool {
        match verb {
            Verb::Page(_) | Verb::History(_) => self.transport.link().unsent() == 0,
            _ => !self.is_clogged() && !self.transport.link().is_uncounted(),
        }
    }

    /// Charges what was read. Frames without a message, such as empty continuations, cost the peer only here.
    fn charge_reads(&mut self) -> Result<(), End> {
        let reads = self.transport.link_mut().take_reads();
        if reads == 0 {
            return Ok(());
        }
        let Shared { settings, uptime, .. } = &*self.shared;
        let fair = self.reads.take(reads, uptime.elapsed_ms(), settings.now().reads());
        if fair { Ok(()) } else { Err(End::Close(Close::TooManyRequests)) }
    }

    fn is_clogged(&self) -> bool {
        self.transport.link().unsent() > self.shared.settings.now().write_buffer_max_bytes
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        if connection.ending.is_none() {
            let end = ready!(connection.poll_work(cx));
            connection.end(end);
        }
        connection.poll_ending(cx)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(who) = &self.who {
            self.shared.local.pool.leave(who.user.no, self.slot.connection);
        }
        self.shared.metrics.connections.of(Carrier::of(&self.transport)).dec();
        self.shared.local.pool.depart(&self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i18_what_an_idle_session_holds_is_small() {
        let sizes = (size_of::<Connection>(), size_of::<Slot>(), size_of::<Identity>(), size_of::<Sleep>());
        assert!(sizes.0 <= 392 && sizes.1 <= 48 && sizes.2 <= 104 && sizes.3 <= 128, "{sizes:?}");
    }
}
