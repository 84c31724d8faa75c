//! What the rest of the node can tell a connection: that a feed has grown; that more was seen; that a watched item has
//! news; or that the connection is to close.
//!
//! Invariants:
//! - A connection is woken by growth of the feeds that it listens to, and by a look at all feeds. A connection listens
//!   to a feed before its first read of that feed, so that no growth is lost in between.
//! - A bit that is set stays until the connection takes it, when the read for it is about to start.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use feedgate_common::FeedId;
use futures_util::task::AtomicWaker;

use crate::protocol::Close;

/// What one connection is to be told. 56 bytes, with the counts of its `Arc`.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The number of the connection within the node, which is never used twice.
    pub(crate) connection: u64,
    /// The bits of a [`Wake`], and above them the code to close with (0: none).
    bits: AtomicU32,
    /// The bits of the feeds whose growth wakes the connection.
    listens: AtomicU16,
    /// Whether the connection ends. A command of this connection may still be carried out.
    ends: AtomicBool,
    /// Whether a command that is still being carried out is to be given up.
    left: AtomicBool,
    task: AtomicWaker,
}

/// Why a connection is woken: a set of reasons, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake(u32);

/// How many bits of [`Wake`] the named feeds share.
const NAMED: u16 = 14;

/// The place of the close code, above the bits of a wake. A close code has 13 bits.
const CLOSE_SHIFT: u32 = 18;

impl Wake {
    /// The log of every feed is to be read: wakes may have been lost, or there is something to pull.
    pub(crate) const LOOK: Self = Self(1 << 15);

    /// The reader has seen more of a feed to which the connection listens.
    pub(crate) const SEEN: Self = Self(1 << 16);

    /// There is news of an item that the connection watches.
    pub(crate) const AROUND: Self = Self(1 << 17);

    /// Wakes may have been lost, of whatever kind: every log is to be read, and what was seen is to be looked at.
    pub(crate) const MISSED: Self = Self(Self::LOOK.0 | Self::SEEN.0);

    /// An inbox of this feed has grown. Named feeds whose numbers differ by a multiple of [`NAMED`] share a bit: then
    /// one feed is read without need when the other has grown.
    pub(crate) fn growth(feed: FeedId) -> Self {
        Self(if feed == FeedId::MAIN { 1 } else { 2 << (feed.0 % NAMED) })
    }

    /// Whether [`Wake::LOOK`] is among the reasons. Then the log is read, whatever the other reasons are.
    pub(crate) fn is_look(self) -> bool {
        self.0 & Self::LOOK.0 != 0
    }

    /// Whether [`Wake::SEEN`] is among the reasons. Then what was seen is looked at, if the device wants to know it.
    pub(crate) fn is_seen(self) -> bool {
        self.0 & Self::SEEN.0 != 0
    }

    /// Whether [`Wake::AROUND`] is among the reasons.
    pub(crate) fn is_around(self) -> bool {
        self.0 & Self::AROUND.0 != 0
    }

    /// Whether the feed is to be read.
    pub(crate) fn concerns(self, feed: FeedId) -> bool {
        self.is_look() || self.0 & Self::growth(feed).0 != 0
    }
}

impl Slot {
    /// The slot of a connection that listens to nothing yet.
    pub(crate) fn new(connection: u64) -> Self {
        let (bits, listens) = (AtomicU32::new(0), AtomicU16::new(0));
        let (ends, left) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { connection, bits, listens, ends, left, task: AtomicWaker::new() }
    }

    /// From now on the connection is woken by growth of these feeds and of no others.
    pub(crate) fn listen(&self, feeds: &[FeedId]) {
        let bits = feeds.iter().fold(0, |bits, feed| bits | listened(*feed));
        self.listens.store(bits, Ordering::SeqCst);
    }

    /// Whether growth of this feed wakes the connection.
    pub(crate) fn listens(&self, feed: FeedId) -> bool {
        self.listens.load(Ordering::SeqCst) & listened(feed) != 0
    }

    /// Adds the reasons `why`, and wakes the task if one of them is new. Returns whether one of them is new.
    pub(crate) fn wake(&self, why: Wake) -> bool {
        let bits = why.0;
        let is_new = self.bits.fetch_or(bits, Ordering::AcqRel) & bits != bits;
        if is_new {
            self.task.wake();
        }
        is_new
    }

    /// Asks the connection to close with this code, unless it was asked before.
    pub(crate) fn close(&self, close: Close) {
        let code = u32::from(close.code()) << CLOSE_SHIFT;
        let first = |bits: u32| (bits >> CLOSE_SHIFT == 0).then_some(bits | code);
        if self.bits.fetch_update(Ordering::AcqRel, Ordering::Acquire, first).is_ok() {
            self.task.wake();
        }
    }

    /// The connection ends: its peer has left, or it is closed.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Release);
    }

    /// Whether the connection [ends](Self::end).
    pub(crate) fn ends(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    /// Says that the peer has left: a command that still waits for the stores is to be given up.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Whether the peer [has left](Self::leave).
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Sets the task that is woken from now on. Call this before looking at the bits.
    pub(crate) fn register(&self, task: &std::task::Waker) {
        self.task.register(task);
    }

    /// Takes the reasons to wake, if there are any. Call this before the read starts, never after it.
    pub(crate) fn take_wake(&self) -> Option<Wake> {
        const WAKES: u32 = (1 << CLOSE_SHIFT) - 1;
        if self.bits.load(Ordering::Acquire) & WAKES == 0 {
            return None;
        }
        let taken = self.bits.fetch_and(!WAKES, Ordering::AcqRel) & WAKES;
        (taken != 0).then_some(Wake(taken))
    }

    /// The code to close with, if the connection was asked to close.
    pub(crate) fn asked_to_close(&self) -> Option<Close> {
        Close::from_code((self.bits.load(Ordering::Acquire) >> CLOSE_SHIFT) as u16)
    }
}

/// The bit of a feed that a connection listens to.
fn listened(feed: FeedId) -> u16 {
    Wake::growth(feed).0 as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_says_once_which_feeds_have_grown_or_that_all_are_to_be_looked_at() {
        let slot = Slot::new(1);
        let likes = FeedId(3);
        [FeedId::MAIN, likes, likes].into_iter().for_each(|feed| _ = slot.wake(Wake::growth(feed)));
        let woken = slot.take_wake().unwrap();
        let concerned = [FeedId::MAIN, likes, FeedId(4)].map(|feed| woken.concerns(feed));
        assert_eq!((concerned, woken.is_look(), slot.take_wake()), ([true, true, false], false, None));
        slot.wake(Wake::LOOK);
        slot.wake(Wake::growth(likes));
        let woken = slot.take_wake().unwrap();
        assert!(woken.is_look() && (0..100).all(|feed| woken.concerns(FeedId(feed))));
    }

    #[test]
    fn that_more_was_seen_is_no_growth_and_what_was_missed_may_be_either() {
        let slot = Slot::new(1);
        slot.wake(Wake::growth(FeedId::MAIN));
        assert!(!slot.take_wake().unwrap().is_seen());
        slot.wake(Wake::SEEN);
        let woken = slot.take_wake().unwrap();
        assert!(woken.is_seen() && !woken.is_look() && !(0..100).any(|feed| woken.concerns(FeedId(feed))));
        assert!(Wake::MISSED.is_seen() && Wake::MISSED.is_look() && !Wake::LOOK.is_seen());
        slot.wake(Wake::AROUND);
        let woken = slot.take_wake().unwrap();
        assert!(woken.is_around() && !woken.is_seen() && !woken.is_look() && !Wake::MISSED.is_around());
        slot.close(Close::Replaced);
        assert_eq!((slot.take_wake(), slot.asked_to_close()), (None, Some(Close::Replaced)));
    }

    #[test]
    fn no_feed_takes_the_bit_of_the_main_one_or_of_a_look_or_of_a_close() {
        for feed in (1..1000).map(FeedId) {
            let slot = Slot::new(1);
            slot.wake(Wake::growth(feed));
            assert_eq!(slot.asked_to_close(), None);
            let woken = slot.take_wake().unwrap();
            assert!(woken.concerns(feed) && !woken.concerns(FeedId::MAIN) && !woken.is_look(), "{feed:?}");
            assert!(!woken.is_seen(), "{feed:?}");
        }
    }
}
