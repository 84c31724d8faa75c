//! What a reader has seen of a feed, and what of it is unread.
//!
//! ```text
//!   log of this epoch   1 2 3 4 5 │ 6 7 8 9        unread: the living adds beyond `position`
//!                        position ┘
//!   a log built since   1 2 3 4 5 6 7 8 9          unread: what was published after `until`
//! ```
//!
//! A position has a meaning only in its own epoch. So a [`Seen`] also holds the time at which the newest seen item was
//! published. This time decides for the adds of a log that was built anew since, and for adds that were cut from a log.
//!
//! Invariants:
//! - What is seen only moves forward: [`Seen::or_later`] never gives less than it was given, and [`Seen::advanced`]
//!   lets no add become unread that was seen.
//! - An add that comes into a log after a reader has seen that log is unread, whenever it was published.

use crate::{Millis, Position};

/// The greatest number of unread items that is told. It stands for "that many or more".
pub const UNREAD_MAX: usize = 999;

/// What a reader has seen of one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// All changes of the log up to here are seen.
    pub position: Position,
    /// When the newest seen item was published, in Unix ms; `Millis::MIN` if no item was seen. In another log than that
    /// of `position`, items that were published up to this time count as seen.
    pub until: Millis,
    /// What was seen in logs of earlier epochs.
    pub earlier: Earlier,
}

/// What was seen in logs of earlier epochs. Of the adds that stood in this log when the reader first saw the log, those
/// that were published up to `until` count as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    /// The [`Seen::until`] of the earlier epoch.
    pub until: Millis,
    /// The offset at which this log ended when the reader first saw it; 0 if there was no earlier epoch.
    pub upto: u64,
}

/// Whether one add is unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The reader has seen the add.
    Seen,
    /// The reader has not seen the add.
    Unread,
    /// The add is unread if its item was published after this time, in Unix ms.
    IfAfter(Millis),
}

impl Seen {
    /// The state of a reader who has seen nothing of the log that ends at `head`.
    fn nothing(head: Position) -> Self {
        let position = Position { offset: 0, ..head };
        Self { position, until: Millis::MIN, earlier: Earlier { until: Millis::MIN, upto: 0 } }
    }

    /// What `seen` says about the log that ends at `head`.
    pub fn of_log(seen: Option<Self>, head: Position) -> Self {
        match seen {
            Some(seen) if seen.position.epoch == head.epoch => seen,
            Some(Self { until, .. }) => {
                Self { until, earlier: Earlier { until, upto: head.offset }, ..Self::nothing(head) }
            }
            None => Self::nothing(head),
        }
    }

    /// Judges the add that stands at `seq` of the log.
    pub fn judge(&self, seq: u64) -> Judged {
        if seq <= self.position.offset {
            Judged::Seen
        } else if seq <= self.earlier.upto {
            Judged::IfAfter(self.earlier.until)
        } else {
            Judged::Unread
        }
    }

    /// Whether an add may be unread that the log does not hold, if it holds the changes beyond `base`.
    pub fn may_lack(&self, base: u64) -> bool {
        self.position.offset < base || self.position.offset < self.earlier.upto
    }

    /// This sight, with all changes up to `offset` of the same log seen. `newest` is when the newest of the adds was
    /// published that are seen only now.
    pub fn advanced(self, offset: u64, newest: Option<Millis>) -> Self {
        if offset <= self.position.offset {
            return self;
        }
        let position = Position { offset, ..self.position };
        Self { position, until: newest.map_or(self.until, |newest| newest.max(self.until)), ..self }
    }

    /// The sight to store when this sight comes and `stored` is stored; `None` if `stored` stays. Every home stores by
    /// this rule, in one atomic step.
    pub fn or_later(self, stored: Option<Self>) -> Option<Self> {
        let Some(stored) = stored else { return Some(self) };
        if self.position <= stored.position {
            return None;
        }
        let goes_on = self.position.epoch == stored.position.epoch;
        let before = if goes_on { stored.earlier.until } else { stored.until };
        let earlier = Earlier { until: self.earlier.until.max(before), ..self.earlier };
        Some(Self { until: self.until.max(stored.until), earlier, ..self })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Epoch;

    fn at(epoch: u64, offset: u64) -> Position {
        Position { epoch: Epoch(epoch), offset }
    }

    /// Whether the add at `seq`, published at `time`, is unread.
    fn is_unread(seen: &Seen, seq: u64, time: Millis) -> bool {
        match seen.judge(seq) {
            Judged::Seen => false,
            Judged::Unread => true,
            Judged::IfAfter(until) => time > until,
        }
    }

    fn unread(seen: &Seen, log: &[Millis]) -> Vec<u64> {
        (1..).zip(log).filter(|(seq, time)| is_unread(seen, *seq, **time)).map(|(seq, _)| seq).collect()
    }

    /// What a reader has seen who sees this log up to `offset`, whose adds were published at these times.
    fn see(seen: Option<Seen>, epoch: u64, log: &[Millis], offset: usize) -> Seen {
        let seen = Seen::of_log(seen, at(epoch, log.len() as u64));
        let fresh = (1..).zip(&log[..offset]).filter(|(seq, _)| *seq > seen.position.offset);
        seen.advanced(offset as u64, fresh.map(|(_, time)| *time).max())
    }

    #[test]
    fn in_its_own_log_what_is_beyond_the_position_is_unread_and_nothing_else() {
        let log = [50, 10, 40, 20, 30];
        assert_eq!(unread(&Seen::of_log(None, at(1, 5)), &log), [1, 2, 3, 4, 5]);
        assert_eq!(unread(&see(None, 1, &log, 3), &log), [4, 5], "also what was published before what is seen");
        assert_eq!(unread(&see(None, 1, &log, 5), &log), [0; 0]);
        assert!(see(None, 1, &log, 3).may_lack(4) && !see(None, 1, &log, 3).may_lack(3));
    }

    #[test]
    fn in_a_log_that_was_built_since_what_was_published_later_is_unread_and_all_that_comes_into_it() {
        let seen = see(None, 1, &[10, 20, 30], 2);
        let built = [10, 20, 30, 40];
        let judged = Seen::of_log(Some(seen), at(2, 4));
        assert_eq!(unread(&judged, &built), [3, 4]);
        assert!(judged.may_lack(0), "what the build left out may be unread");
        let seen = see(Some(seen), 2, &built, 3);
        assert_eq!(unread(&seen, &[10, 20, 30, 40, 5]), [4, 5], "an old item that a follow has brought since");
        assert!(!see(Some(seen), 2, &[10, 20, 30, 40, 5], 5).may_lack(0));
    }

    #[test]
    fn of_two_that_come_to_the_store_the_later_position_stays_and_knows_what_either_has_seen() {
        let [low, high] = [3, 5].map(|offset| see(None, 1, &[10, 20, 30, 60, 50], offset));
        assert_eq!((low.or_later(Some(high)), high.or_later(Some(high))), (None, None));
        assert_eq!(high.or_later(Some(low)), Some(high));
        let next = see(Some(low), 2, &[10, 20, 30, 50, 60], 1);
        let stored = next.or_later(Some(high)).unwrap();
        assert_eq!(unread(&stored, &[10, 20, 30, 50, 60]), [0; 0], "the other device had seen all");
        assert_eq!((stored.position, stored.until), (at(2, 1), 60));
        assert_eq!(high.or_later(Some(stored)), None, "an earlier epoch");
    }

    proptest! {
        #[test]
        fn seeing_more_never_makes_anything_unread(
            logs in prop::collection::vec((prop::collection::vec(0..9i64, 1..9), prop::collection::vec(0..9usize, 1..5)), 1..4),
        ) {
            let mut seen = None;
            for (epoch, (log, offsets)) in (1..).zip(&logs) {
                let head = at(epoch, log.len() as u64);
                for offset in offsets {
                    let before = unread(&Seen::of_log(seen, head), log);
                    let next = see(seen, epoch, log, *offset.min(&log.len()));
                    let stored = next.or_later(seen).or(seen);
                    let after = unread(&Seen::of_log(stored, head), log);
                    prop_assert!(after.iter().all(|seq| before.contains(seq)), "{before:?} {after:?}");
                    prop_assert!(after.iter().all(|seq| *seq as usize > *offset));
                    seen = stored;
                }
            }
        }
    }
}
