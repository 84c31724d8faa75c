//! The moment until which an inbox is kept, in whole seconds: four bytes reach to the year 2106.

use feedgate_common::Millis;
use feedgate_common::varint::{put, take_u32};

/// Seconds since 1970. The greatest value means for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Until(u32);

impl Until {
    /// The first second that is not before `moment`.
    pub(super) fn at_least(moment: Millis) -> Self {
        let seconds = moment.max(0) / 1000 + Millis::from(moment.max(0) % 1000 > 0);
        Self(u32::try_from(seconds).unwrap_or(u32::MAX))
    }

    /// The last second that is not after `moment`.
    pub(super) fn at_most(moment: Millis) -> Self {
        Self(u32::try_from(moment.max(0) / 1000).unwrap_or(u32::MAX))
    }

    /// The moment in Unix ms; `Millis::MAX` if it is for ever.
    pub(super) fn millis(self) -> Millis {
        if self.0 == u32::MAX { Millis::MAX } else { Millis::from(self.0) * 1000 }
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        put(out, self.0.into());
    }

    pub(super) fn take(bytes: &mut &[u8]) -> Option<Self> {
        take_u32(bytes).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_is_kept_at_least_as_long_as_was_promised() {
        for (promised, kept) in [(i64::MIN, 0), (0, 0), (1, 1000), (1000, 1000), (1001, 2000), (i64::MAX, i64::MAX)] {
            assert_eq!(Until::at_least(promised).millis(), kept, "{promised}");
        }
        for (now, passed) in [(i64::MIN, 0), (999, 0), (1000, 1000), (1999, 1000), (i64::MAX, i64::MAX)] {
            assert_eq!(Until::at_most(now).millis(), passed, "{now}");
        }
    }
}
