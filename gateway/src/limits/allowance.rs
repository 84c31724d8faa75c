//! What a peer may do per second, stored as one number: the moment at which all that the peer has done so far would
//! have been fair (the leaky bucket known as GCRA).

/// What one peer has done so far, as the moment from which the peer may do more. A new allowance equals one that was
/// unused for a long time.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    fair_at_us: u64,
}

/// The rate that an [`Allowance`] allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How many a second are allowed in the long run; at least 1.
    pub(crate) per_sec: u32,
    /// How many are allowed at once after a pause.
    pub(crate) burst: u32,
}

impl Rate {
    /// Allows `per_sec` a second, and twice as many at once after a pause.
    pub(crate) fn twice(per_sec: u32) -> Self {
        Self { per_sec, burst: per_sec.saturating_mul(2) }
    }

    fn us(self, count: u32) -> u64 {
        1_000_000 * u64::from(count) / u64::from(self.per_sec.max(1))
    }
}

impl Allowance {
    /// Takes `count` at `now_ms`. Gives false, and takes nothing, if that would be more than `rate` allows.
    pub(crate) fn take(&mut self, count: u32, now_ms: u64, rate: Rate) -> bool {
        let now_us = now_ms * 1000;
        let next = self.fair_at_us.max(now_us) + rate.us(count);
        if next > now_us + rate.us(rate.burst) {
            return false;
        }
        self.fair_at_us = next;
        true
    }

    /// Takes `count` at `now_ms`, even if that is more than `rate` allows; then the peer has to wait longer.
    pub(crate) fn owe(&mut self, count: u32, now_ms: u64, rate: Rate) {
        self.fair_at_us = self.fair_at_us.max(now_ms * 1000) + rate.us(count);
    }

    /// Puts back `count` units that were taken before.
    pub(crate) fn give_back(&mut self, count: u32, rate: Rate) {
        self.fair_at_us = self.fair_at_us.saturating_sub(rate.us(count));
    }

    /// Whether at `now_ms` the whole burst may be taken, as from a new allowance.
    pub(crate) fn is_full(&self, now_ms: u64) -> bool {
        self.fair_at_us <= now_ms * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_twice_the_rate_passes_and_then_only_the_rate() {
        let mut allowance = Allowance::default();
        let mut taken = |now| (0..500).filter(|_| allowance.take(1, now, Rate::twice(50))).count();
        assert_eq!([7_000, 8_000, 60_000].map(&mut taken), [100, 50, 100]);
        assert!(!allowance.is_full(61_999) && allowance.is_full(62_000));
    }

    #[test]
    fn many_at_once_count_as_many_and_what_is_too_much_takes_nothing() {
        let mut allowance = Allowance::default();
        let rate = Rate { per_sec: 10, burst: 300 };
        assert!(!allowance.take(301, 0, rate) && allowance.take(300, 0, rate));
        assert!(!allowance.take(1, 99, rate) && allowance.take(1, 100, rate));
    }

    #[test]
    fn what_is_owed_counts_also_beyond_the_burst() {
        let (mut allowance, rate) = (Allowance::default(), Rate { per_sec: 10, burst: 10 });
        allowance.owe(30, 5_000, rate);
        assert!(!allowance.take(1, 7_099, rate) && allowance.take(1, 7_100, rate));
    }
}
