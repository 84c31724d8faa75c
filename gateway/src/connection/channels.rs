//! The feeds that one connection has used: the main one, which nearly every device has, in a field of its own; named
//! feeds are added when they are first used.
//!
//! ```text
//!   main ─▶ named ─▶ named ─▶ main …     whose turn it is to read: one at a time, each in its turn
//! ```
//!
//! Invariants:
//! - A feed that was added stays until the connection ends, so what was acknowledged in it is saved then. There are at
//!   most as many as are configured.
//! - A channel that wants to read waits for at most one turn of each other channel.

use std::iter::once;

use feedgate_common::{FeedId, Position};

use super::backoff::Backoff;
use super::counting::Counting;
use crate::node::slot::Wake;
use crate::protocol::Subscribe;
use crate::subscription::Subscription;

/// One feed of a connection.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) feed: FeedId,
    /// The subscription, while the device has one.
    pub(super) subscription: Option<Subscription>,
    /// The device has all changes up to this position.
    pub(super) acked: Option<Position>,
    pub(super) backoff: Backoff,
    /// Whether the log may have grown since the last read began.
    pub(super) woken: bool,
    /// Whether the next read must ask the log itself: wakes may have been lost, there is something to pull, or the last
    /// read did not reach the end.
    pub(super) looking: bool,
    /// Whether the device wants to know how much is unread, and what it was told.
    pub(super) counting: Counting,
    /// Whether pushes have the number of the channel in place of its name.
    pub(super) numbered: bool,
}

/// All feeds that one connection has used.
#[derive(Debug)]
pub(super) struct Channels {
    main: Channel,
    named: Box<[Channel]>,
    /// The feed whose read is in flight, or was the last.
    turn: FeedId,
}

impl Channel {
    fn new(feed: FeedId) -> Self {
        Self {
            feed,
            subscription: None,
            acked: None,
            backoff: Backoff::default(),
            woken: false,
            looking: false,
            counting: Counting::new(false),
            numbered: false,
        }
    }

    fn wants_a_turn(&self) -> bool {
        self.subscription.as_ref().is_some_and(|subscription| self.woken || subscription.awaits_writable())
    }
}

impl Default for Channels {
    fn default() -> Self {
        Self { main: Channel::new(FeedId::MAIN), named: Box::default(), turn: FeedId::MAIN }
    }
}

impl Channels {
    /// All feeds that were used.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> + Clone {
        once(&self.main).chain(&self.named)
    }

    /// The subscription to this feed, if there is one.
    pub(super) fn subscription(&self, feed: FeedId) -> Option<&Subscription> {
        self.iter().find(|channel| channel.feed == feed)?.subscription.as_ref()
    }

    /// The channel of this feed; it is added if it was not used before.
    pub(super) fn of(&mut self, feed: FeedId) -> &mut Channel {
        if feed == FeedId::MAIN {
            return &mut self.main;
        }
        let at = self.named.iter().position(|channel| channel.feed == feed).unwrap_or_else(|| {
            let mut more = std::mem::take(&mut self.named).into_vec();
            more.reserve_exact(1);
            more.push(Channel::new(feed));
            self.named = more.into();
            self.named.len() - 1
        });
        &mut self.named[at]
    }

    /// Marks each channel that `why` concerns, so that the channel wants a turn.
    pub(super) fn wake(&mut self, why: Wake) {
        for channel in once(&mut self.main).chain(&mut self.named).filter(|channel| why.concerns(channel.feed)) {
            channel.woken = true;
            channel.looking |= why.is_look();
        }
        if why.is_seen() {
            once(&mut self.main).chain(&mut self.named).for_each(|channel| channel.woken |= channel.counting.look());
        }
    }

    /// The feed whose read is in flight, or was the last.
    pub(super) fn turn(&self) -> FeedId {
        self.turn
    }

    /// Begins a subscription, as the device has asked for it, and gives it the turn.
    pub(super) fn begin(&mut self, asked: &Subscribe, subscription: Subscription) {
        let channel = self.of(asked.feed);
        let (counting, numbered) = (Counting::new(asked.unread), asked.numbered);
        let (acked, subscription) = (channel.acked, Some(subscription));
        *channel = Channel { subscription, acked, counting, numbered, ..Channel::new(asked.feed) };
        self.turn = asked.feed;
    }

    /// Gives the turn to the next channel that wants a turn, counted from the channel that had it last; `None` if no
    /// channel wants a turn.
    pub(super) fn take_turn(&mut self) -> Option<FeedId> {
        let last = self.iter().position(|channel| channel.feed == self.turn).unwrap_or(0);
        let others_first = self.iter().cycle().skip(last + 1).take(1 + self.named.len());
        let next = others_first.filter(|channel| channel.wants_a_turn()).map(|channel| channel.feed).next();
        self.turn = next?;
        next
    }

    /// The acknowledged positions, by feed.
    pub(super) fn acked(&self) -> Vec<(FeedId, Position)> {
        self.iter().filter_map(|channel| Some((channel.feed, channel.acked?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::StartFrom;
    use crate::subscription::{Deliver, Start};

    const MAIN: FeedId = FeedId::MAIN;
    const LIKES: FeedId = FeedId(3);
    const STORIES: FeedId = FeedId(4);

    /// The channels of a connection with these subscriptions, none of which has anything to read.
    fn subscribed(feeds: &[FeedId]) -> Channels {
        let mut channels = Channels::default();
        feeds.iter().for_each(|feed| begin(&mut channels, *feed, false));
        channels
    }

    /// Begins a subscription of a device that wants to know how much is unread, if `unread`.
    fn begin(channels: &mut Channels, feed: FeedId, unread: bool) {
        let (from, deliver) = (StartFrom::Head, Deliver::Items);
        let asked = Subscribe { feed, from, deliver, unread, reject_unrecovered: false, numbered: false };
        channels.begin(&asked, Subscription::open(deliver, Start::Head, false).0);
    }

    /// Gives a turn as `take_turn` does, after which the channel wants none; gives its feed.
    fn turn(channels: &mut Channels) -> Option<FeedId> {
        let feed = channels.take_turn()?;
        channels.of(feed).woken = false;
        Some(feed)
    }

    #[test]
    fn i18_whoever_wants_to_read_waits_for_each_other_channel_once_at_most() {
        let mut channels = subscribed(&[LIKES, MAIN, STORIES]);
        assert_eq!(turn(&mut channels), None);
        let mut turns = vec![];
        for _ in 0..6 {
            channels.wake(Wake::LOOK);
            turns.push(turn(&mut channels).unwrap());
        }
        assert_eq!(turns, [MAIN, LIKES, STORIES, MAIN, LIKES, STORIES]);
        // A channel that always has more to read does not keep the others from their turns.
        channels = subscribed(&[MAIN, STORIES, LIKES]);
        channels.wake(Wake::growth(STORIES));
        let busy = |channels: &mut Channels| {
            channels.wake(Wake::growth(LIKES));
            turn(channels)
        };
        assert_eq!([busy(&mut channels), busy(&mut channels)], [Some(STORIES), Some(LIKES)]);
        channels.wake(Wake::growth(MAIN));
        assert_eq!([busy(&mut channels), busy(&mut channels)], [Some(MAIN), Some(LIKES)]);
    }

    #[test]
    fn growth_wants_a_turn_for_its_own_feed_and_a_look_for_every_one() {
        let mut channels = subscribed(&[MAIN, LIKES]);
        channels.wake(Wake::growth(LIKES));
        channels.wake(Wake::growth(STORIES));
        assert_eq!([turn(&mut channels), turn(&mut channels)], [Some(LIKES), None]);
        assert!(!channels.of(LIKES).looking);
        channels.wake(Wake::LOOK);
        assert!(channels.of(LIKES).looking && channels.of(MAIN).looking);
        assert_eq!([turn(&mut channels), turn(&mut channels), turn(&mut channels)], [Some(MAIN), Some(LIKES), None]);
    }

    #[test]
    fn what_was_seen_wants_a_turn_only_of_channels_that_count() {
        let mut channels = subscribed(&[MAIN, LIKES]);
        begin(&mut channels, STORIES, true);
        channels.wake(Wake::SEEN);
        assert_eq!([turn(&mut channels), turn(&mut channels)], [Some(STORIES), None]);
        assert!(channels.of(STORIES).counting.take_look() && !channels.of(STORIES).looking);
        assert!(!channels.of(LIKES).counting.take_look());
    }

    #[test]
    fn what_was_acknowledged_outlives_its_subscription_and_the_next_one() {
        let at = |offset| Position { epoch: feedgate_common::Epoch(1), offset };
        let mut channels = subscribed(&[LIKES]);
        channels.of(LIKES).acked = Some(at(5));
        channels.of(LIKES).subscription = None;
        channels.of(MAIN).acked = Some(at(7));
        assert!(channels.subscription(LIKES).is_none());
        begin(&mut channels, LIKES, false);
        assert!(channels.subscription(LIKES).is_some() && channels.subscription(STORIES).is_none());
        assert_eq!(channels.acked(), [(MAIN, at(7)), (LIKES, at(5))]);
    }
}
