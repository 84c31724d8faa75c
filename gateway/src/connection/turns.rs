//! The subscriptions of a connection, from the reply that begins each to its pushes: they read in turns.
//!
//! ```text
//!   subscribe ──where from──▶ open ─┐
//!   woken, or more to come ─────────┴─▶ the one read in flight ──Found──▶ reply, pushes ──all sent──▶ the next turn
//! ```
//!
//! - One read is in flight at a time, for all channels; one that begins a subscription goes before the others.
//! - While anything is unsent, only a subscription that begins is read for: for a device that does not receive what one
//!   channel brings, the others are not read either (I18).

use feedgate_common::feed::Sight;
use feedgate_common::{FeedId, Position, failpoint};

use super::reading::{self, Pushes, Reading, Wanted};
use super::{Connection, End, TIMEOUT};
use crate::node::bounded::within;
use crate::node::metrics::Reset;
use crate::protocol::{Close, ErrorCode, Label, Reply, Subscribe, number};
use crate::subscription::{Action, Ask, Deliver, Input, Start, Subscription};

/// A subscription that has not been answered yet.
pub(super) struct Subscribing {
    /// The id of the command, for the reply.
    pub(super) id: u32,
    /// What the device has asked for.
    pub(super) asked: Subscribe,
    /// Where the subscription starts: `None` until that is known, and again once its read has begun.
    pub(super) start: Option<Start>,
}

/// What was read for an input.
#[derive(Debug, Default)]
struct Brought {
    /// The pushes of changes.
    frame: Vec<u8>,
    sight: Option<Sight>,
}

impl Connection {
    /// Begins the subscription in the making, if its start is known and nothing else is being read. Returns whether a
    /// subscription was begun.
    pub(super) fn open(&mut self) -> Result<bool, End> {
        let (Some(subscribing), None) = (&mut self.subscribing, &self.reading) else { return Ok(false) };
        let Some(start) = subscribing.start.take() else { return Ok(false) };
        let Subscribe { feed, deliver, reject_unrecovered, .. } = subscribing.asked;
        let (subscription, first) = Subscription::open(deliver, start, reject_unrecovered);
        self.channels.begin(&subscribing.asked, subscription);
        self.listen();
        self.act(feed, first, &Brought::default())?;
        Ok(true)
    }

    /// Ends the subscription of this feed, and drops what is being read for it.
    pub(super) fn unsubscribe(&mut self, feed: FeedId) {
        self.channels.of(feed).subscription = None;
        if self.channels.turn() == feed {
            self.reading = None;
        }
        self.listen();
    }

    fn listen(&self) {
        let open = self.channels.iter().filter(|channel| channel.subscription.is_some());
        self.slot.listen(&open.map(|channel| channel.feed).collect::<Vec<_>>());
    }

    /// Gives turns to the channels that want one, until one of them reads. Call when everything is sent. Returns
    /// whether a channel had a turn.
    pub(super) fn take_turns(&mut self) -> Result<bool, End> {
        let mut worked = false;
        while self.reading.is_none()
            && let Some(feed) = self.channels.take_turn()
        {
            worked = true;
            if std::mem::take(&mut self.channels.of(feed).woken) {
                self.drive(feed, Input::Wake, &Brought::default())?;
            }
            if self.channels.subscription(feed).is_some_and(Subscription::awaits_writable) {
                failpoint::hit("catch-up-batch");
                self.drive(feed, Input::Writable, &Brought::default())?;
            }
        }
        Ok(worked)
    }

    /// Takes what was read for the channel whose turn it is.
    pub(super) fn found(&mut self, read: feedgate_common::error::Result<Reading>) -> Result<(), End> {
        let feed = self.channels.turn();
        match read {
            // Another node may have claimed this device and told it more: what was read is dropped without being sent
            // (I17).
            Ok(_) if !self.shared.lease.may_push() => self.failed(feed),
            Ok(Reading { found, frame, held, sight, pushing }) => {
                let channel = self.channels.of(feed);
                channel.backoff.succeeded();
                channel.looking |= found.is_cut();
                // To hold nothing would still take memory of an idle connection.
                if let Some(held) = held.filter(|held| held.bytes() > 0) {
                    self.transport.link_mut().hold(held);
                }
                if let Some(pushing) = pushing {
                    self.transport.link_mut().traces(pushing);
                }
                self.drive(feed, Input::Found(found), &Brought { frame, sight })?;
                self.tell(feed, sight);
                Ok(())
            }
            Err(error) => {
                if !self.shared.found_damage(&error) {
                    tracing::debug!(%error, "a subscription could not read its log");
                }
                self.failed(feed)
            }
        }
    }

    /// Passes a failed read to the subscription of this feed. What was seen of the feed is read again too.
    fn failed(&mut self, feed: FeedId) -> Result<(), End> {
        self.channels.of(feed).counting.look();
        self.drive(feed, Input::Failed, &Brought::default())
    }

    /// Tells the device up to where the feed was seen, if it was not told before and the subscription is in the same
    /// epoch.
    fn tell(&mut self, feed: FeedId, sight: Option<Sight>) {
        let Some(sight) = sight else { return };
        let at = self.channels.subscription(feed).map(Subscription::position);
        let channel = self.channels.of(feed);
        if at.is_some_and(|at| at.epoch == sight.head.epoch) && channel.counting.tells(sight.seen) {
            let name = self.shared.reads.channel(feed);
            let label = Label::of(feed, &name, channel.numbered);
            self.transport.frame(|out| self.format.seen(out, label, sight));
        }
    }

    /// Passes an input to the subscription of this feed, and does what it says with what was read.
    fn drive(&mut self, feed: FeedId, input: Input, brought: &Brought) -> Result<(), End> {
        let Some(subscription) = &mut self.channels.of(feed).subscription else { return Ok(()) };
        subscription.on(input).into_iter().try_for_each(|action| self.act(feed, action, brought))
    }

    fn act(&mut self, feed: FeedId, action: Action, brought: &Brought) -> Result<(), End> {
        match action {
            Action::Read(ask) => {
                let who = self.who.as_ref().expect("a subscription belongs to somebody");
                let channel = self.channels.of(feed);
                let begins = self.subscribing.as_ref().is_some_and(|begins| begins.asked.feed == feed);
                let pushes = Pushes { format: self.format, numbered: channel.numbered };
                let woken = !std::mem::take(&mut channel.looking) && !begins;
                let live = channel.subscription.as_ref().filter(|_| woken).map(Subscription::position);
                let looks = channel.counting.take_look();
                let count = channel.counting.counts() && (looks || begins || ask == Ask::Head);
                let wanted = Wanted { feed, ask, live, count };
                let read = reading::read(self.shared.clone(), who.clone(), pushes, wanted);
                debug_assert!(self.reading.is_none(), "one read at a time");
                self.reading = Some(Box::pin(within(TIMEOUT, read)));
            }
            Action::Opened(opened) => {
                if opened.was_recovering && !opened.recovered {
                    self.resets(Reset::Subscribed);
                }
                let Subscribing { id, asked, .. } = *self.subscribing.take().expect("an opening follows a subscribe");
                // In notify mode an SDK recovers from a position that it was told of; the app may not have fetched up
                // to there.
                if opened.recovered && asked.deliver == Deliver::Items {
                    self.acknowledge(feed, opened.position);
                }
                self.channels.of(feed).counting.tells(brought.sight.and_then(|sight| sight.seen));
                let number = asked.numbered.then(|| number(feed));
                let reply = Reply::Subscribe(opened, brought.sight, number);
                self.transport.frame(|out| self.format.result(out, id, &reply));
            }
            Action::RefuseUnrecovered => {
                self.resets(Reset::Refused);
                self.refuse(feed, ErrorCode::UnrecoverablePosition)?;
            }
            Action::RefuseFailed => self.refuse(feed, ErrorCode::Internal)?,
            Action::Push => self.transport.frame(|out| out.extend_from_slice(&brought.frame)),
            Action::Behind(head) => {
                let subscription = self.channels.subscription(feed).expect("only a subscription says so");
                let head = Position { offset: head, ..subscription.position() };
                let unread = brought.sight.map(|sight| sight.unread);
                let name = self.shared.reads.channel(feed);
                let label = Label::of(feed, &name, self.channels.of(feed).numbered);
                self.transport.frame(|out| self.format.behind(out, label, head, unread));
            }
            Action::Retry => {
                let wait = self.channels.of(feed).backoff.failed(self.slot.connection);
                self.deadlines.reread = self.deadlines.reread.min(self.shared.uptime.elapsed_ms() + wait);
            }
            Action::Close(close) => {
                if close == Close::InsufficientState {
                    self.resets(Reset::Closed);
                }
                return Err(End::Close(close));
            }
        }
        Ok(())
    }

    fn resets(&self, cause: Reset) {
        self.shared.metrics.resets.of(cause).inc();
    }

    fn refuse(&mut self, feed: FeedId, code: ErrorCode) -> Result<(), End> {
        self.unsubscribe(feed);
        let begun = self.subscribing.take().expect("a refusal answers a subscribe");
        self.send_refusal(begun.id, &code.into())
    }

    /// Notes that the device has all changes of this feed up to `position`, if that is after what was noted before.
    pub(super) fn acknowledge(&mut self, feed: FeedId, position: Position) {
        let acked = &mut self.channels.of(feed).acked;
        if acked.is_some_and(|before| before >= position) {
            return;
        }
        *acked = Some(position);
        if let Some(saving) = self.who.as_ref().and_then(|who| who.saving(feed, position)) {
            self.shared.local.positions.note(self.slot.connection, saving);
        }
    }
}
