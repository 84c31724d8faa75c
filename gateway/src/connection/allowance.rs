//! Commands per second, as one number: the moment at which all commands so far would have been
//! fair (the leaky bucket known as GCRA).

/// Allows `per_sec` commands a second, and as many again in a burst.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    fair_at_us: u64,
}

impl Allowance {
    /// Takes one command at `now_ms`; false if it is one too many.
    pub(crate) fn take(&mut self, now_ms: u64, per_sec: u32) -> bool {
        let now_us = now_ms * 1000;
        let next = self.fair_at_us.max(now_us) + 1_000_000 / u64::from(per_sec.max(1));
        if next > now_us + 2_000_000 {
            return false;
        }
        self.fair_at_us = next;
        true
    }

    /// Whether at `now_ms` it is as if nothing had ever been taken.
    pub(crate) fn is_full(&self, now_ms: u64) -> bool {
        self.fair_at_us <= now_ms * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::Allowance;

    #[test]
    fn a_burst_of_twice_the_rate_passes_and_then_only_the_rate() {
        let mut allowance = Allowance::default();
        assert_eq!((0..500).filter(|_| allowance.take(7_000, 50)).count(), 100);
        assert_eq!((0..500).filter(|_| allowance.take(8_000, 50)).count(), 50);
        assert_eq!((0..500).filter(|_| allowance.take(60_000, 50)).count(), 100);
    }
}
