//! What a peer may do per second, as one number: the moment at which all it has done so far would have been fair (the
//! leaky bucket known as GCRA).

/// See the module. A new one is as good as one that was not used for long.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    fair_at_us: u64,
}

/// How much an [`Allowance`] allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// In the long run; at least 1.
    pub(crate) per_sec: u32,
    /// At once, after a pause.
    pub(crate) burst: u32,
}

impl Rate {
    /// `per_sec` a second, and as many again in a burst.
    pub(crate) fn twice(per_sec: u32) -> Self {
        Self { per_sec, burst: per_sec.saturating_mul(2) }
    }

    fn us(self, count: u32) -> u64 {
        1_000_000 * u64::from(count) / u64::from(self.per_sec.max(1))
    }
}

impl Allowance {
    /// Takes `count` at `now_ms`; false, and nothing is taken, if that is more than is fair.
    pub(crate) fn take(&mut self, count: u32, now_ms: u64, rate: Rate) -> bool {
        let now_us = now_ms * 1000;
        let next = self.fair_at_us.max(now_us) + rate.us(count);
        if next > now_us + rate.us(rate.burst) {
            return false;
        }
        self.fair_at_us = next;
        true
    }

    /// Puts back `count` of what was taken.
    pub(crate) fn give_back(&mut self, count: u32, rate: Rate) {
        self.fair_at_us = self.fair_at_us.saturating_sub(rate.us(count));
    }

    /// Whether at `now_ms` it is as if nothing had ever been taken.
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
}
