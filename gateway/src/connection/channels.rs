//! The feeds that one connection has to do with: the main one, which nearly every device has, in its place, and named ones
//! as they come.
//!
//! ```text
//!   main ─▶ named ─▶ named ─▶ main …     whose turn it is to read: one at a time, each in its turn
//! ```
//!
//! Invariants:
//! - A feed that has come stays until the connection ends, so what was acknowledged in it is saved then: as many as are
//!   configured at most.
//! - A channel that wants to read waits for no more turns than there are others.

use std::iter::once;

use feedgate_common::{FeedId, Position};

use super::backoff::Backoff;
use crate::node::slot::Wake;
use crate::session::Session;

/// One feed.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) feed: FeedId,
    /// There while the device is subscribed.
    pub(super) session: Option<Session>,
    /// The device has everything up to here.
    pub(super) acked: Option<Position>,
    pub(super) backoff: Backoff,
    /// The log may have grown since the last read began.
    pub(super) woken: bool,
    /// Only the log itself will do for the next read: wakes may have been lost, there is something to pull, or the last
    /// read did not come to the end.
    pub(super) looking: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Channels {
    main: Channel,
    named: Vec<Channel>,
    /// Whose read is in flight, or was the last.
    turn: FeedId,
}

impl Channel {
    fn new(feed: FeedId) -> Self {
        Self { feed, session: None, acked: None, backoff: Backoff::default(), woken: false, looking: false }
    }

    fn wants_a_turn(&self) -> bool {
        self.session.as_ref().is_some_and(|session| self.woken || session.awaits_writable())
    }
}

impl Default for Channels {
    fn default() -> Self {
        Self { main: Channel::new(FeedId::MAIN), named: Vec::new(), turn: FeedId::MAIN }
    }
}

impl Channels {
    /// Those that there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> + Clone {
        once(&self.main).chain(&self.named)
    }

    /// The subscription to this feed, if there is one.
    pub(super) fn session(&self, feed: FeedId) -> Option<&Session> {
        self.iter().find(|channel| channel.feed == feed)?.session.as_ref()
    }

    /// The channel of this feed.
    pub(super) fn of(&mut self, feed: FeedId) -> &mut Channel {
        if feed == FeedId::MAIN {
            return &mut self.main;
        }
        let at = self.named.iter().position(|channel| channel.feed == feed).unwrap_or_else(|| {
            self.named.reserve_exact(1);
            self.named.push(Channel::new(feed));
            self.named.len() - 1
        });
        &mut self.named[at]
    }

    /// Whoever is concerned wants a turn.
    pub(super) fn wake(&mut self, why: Wake) {
        for channel in once(&mut self.main).chain(&mut self.named).filter(|channel| why.concerns(channel.feed)) {
            channel.woken = true;
            channel.looking |= why.is_look();
        }
    }

    /// Whose read is in flight, or was the last.
    pub(super) fn turn(&self) -> FeedId {
        self.turn
    }

    /// A subscription begins, and it is its turn.
    pub(super) fn begin(&mut self, feed: FeedId, session: Session) {
        let channel = self.of(feed);
        *channel = Channel { session: Some(session), acked: channel.acked, ..Channel::new(feed) };
        self.turn = feed;
    }

    /// The next who wants a turn, after the last who had one; it is theirs now.
    pub(super) fn take_turn(&mut self) -> Option<FeedId> {
        let last = self.iter().position(|channel| channel.feed == self.turn).unwrap_or(0);
        let others_first = self.iter().cycle().skip(last + 1).take(1 + self.named.len());
        let next = others_first.filter(|channel| channel.wants_a_turn()).map(|channel| channel.feed).next();
        self.turn = next?;
        next
    }

    /// What was acknowledged, by feed.
    pub(super) fn acked(&self) -> Vec<(FeedId, Position)> {
        self.iter().filter_map(|channel| Some((channel.feed, channel.acked?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Deliver, Start};

    const MAIN: FeedId = FeedId::MAIN;
    const LIKES: FeedId = FeedId(3);
    const STORIES: FeedId = FeedId(4);

    /// A connection with these subscriptions, none of which has anything to read.
    fn subscribed(feeds: &[FeedId]) -> Channels {
        let mut channels = Channels::default();
        feeds.iter().for_each(|feed| channels.begin(*feed, Session::open(Deliver::Items, Start::Head, false).0));
        channels
    }

    /// Whose turn it is, who has it then.
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
        // One that always has more does not keep the others from theirs.
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
    fn what_was_acknowledged_outlives_its_subscription_and_the_next_one() {
        let at = |offset| Position { epoch: feedgate_common::Epoch(1), offset };
        let mut channels = subscribed(&[LIKES]);
        channels.of(LIKES).acked = Some(at(5));
        channels.of(LIKES).session = None;
        channels.of(MAIN).acked = Some(at(7));
        assert!(channels.session(LIKES).is_none());
        channels.begin(LIKES, Session::open(Deliver::Items, Start::Head, false).0);
        assert!(channels.session(LIKES).is_some() && channels.session(STORIES).is_none());
        assert_eq!(channels.acked(), [(MAIN, at(7)), (LIKES, at(5))]);
    }
}
