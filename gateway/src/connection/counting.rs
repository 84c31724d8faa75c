//! Whether the device of one channel wants to know how much is unread, and what it was told last.
//!
//! It takes two bytes, which were free in every connection: two flags, and 14 bits that stand for the position up to
//! which the device was told that the feed is seen. Two positions of one epoch with less than 16,384 changes between
//! them have different bits; two others hardly ever have the same bits. If they have, the device is told of what is
//! seen with the next change of that.

use feedgate_common::Position;

/// The two flags, and the digest of what was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counting(u16);

const COUNTS: u16 = 1 << 15;
const TELLING: u16 = 1 << 14;
const TOLD: u16 = TELLING - 1;

impl Counting {
    /// The state of a device that was told that nothing is seen. If it `counts`, the device wants to know how much is
    /// unread.
    pub(super) fn new(counts: bool) -> Self {
        Self(if counts { COUNTS } else { 0 })
    }

    /// Whether the device wants to know how much is unread.
    pub(super) fn counts(self) -> bool {
        self.0 & COUNTS != 0
    }

    /// Lets the next read look at what is seen too. False if the device does not want to know it.
    pub(super) fn look(&mut self) -> bool {
        if self.counts() {
            self.0 |= TELLING;
        }
        self.counts()
    }

    /// Whether the read that begins now is to look at what is seen.
    pub(super) fn take_look(&mut self) -> bool {
        let looks = self.0 & TELLING != 0;
        self.0 &= !TELLING;
        looks
    }

    /// Notes that the device is told that the feed is seen up to `seen`. False if the device was told the same last.
    pub(super) fn tells(&mut self, seen: Option<Position>) -> bool {
        let told = seen
            .map_or(0, |at| (at.epoch.0 as u16).wrapping_mul(0x9e37).wrapping_add(at.offset as u16).wrapping_add(1))
            & TOLD;
        let differs = self.0 & TOLD != told;
        self.0 = self.0 & !TOLD | told;
        differs
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::Epoch;

    use super::*;

    fn at(epoch: u64, offset: u64) -> Option<Position> {
        Some(Position { epoch: Epoch(epoch), offset })
    }

    #[test]
    fn what_a_device_knows_to_be_seen_it_is_not_told_again() {
        let mut counting = Counting::new(true);
        let told = [None, at(1, 0), at(1, 0), at(1, 7), at(1, 7), at(2, 7), at(2, 1 << 13), at(2, 1 << 13)];
        assert_eq!(told.map(|seen| counting.tells(seen)), [false, true, false, true, false, true, true, false]);
        assert!((0..1 << 15).all(|offset| counting.tells(at(3, offset))));
        assert!(counting.counts() && !counting.take_look(), "what is told changes nothing else");
    }

    #[test]
    fn one_look_is_for_one_read_and_for_a_device_that_counts() {
        let (mut counting, mut other) = (Counting::new(true), Counting::new(false));
        assert!(counting.look() && counting.look() && !other.look());
        assert_eq!([counting.take_look(), counting.take_look(), other.take_look()], [true, false, false]);
        assert!(counting.counts() && !other.counts());
    }
}
