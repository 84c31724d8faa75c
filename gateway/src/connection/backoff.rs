//! How long a subscription waits before it reads again after a failure: longer each time, and differently for each
//! connection, so that connections that wait for the same store do not all come back at the same moment.

const FIRST_MS: u64 = 1000;

/// The longest wait is `FIRST_MS << DOUBLINGS_MAX`, which is 16 s. The prober wakes all connections earlier if it sees
/// that the store is back.
const DOUBLINGS_MAX: u8 = 4;

/// The number of failures in a row of one subscription's reads.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u8,
}

impl Backoff {
    /// Counts a failure, and gives the time to wait in milliseconds. `seed` is the number of the connection.
    pub(crate) fn failed(&mut self, seed: u64) -> u64 {
        let most = FIRST_MS << self.failures.min(DOUBLINGS_MAX);
        self.failures = self.failures.saturating_add(1);
        most / 2 + scattered(seed.wrapping_add(u64::from(self.failures) << 32)) % (most / 2 + 1)
    }

    /// Counts a success: the next failure is the first again.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// Makes 32 bits that look random from a `seed` that counts up (Fibonacci hashing).
pub(crate) fn scattered(seed: u64) -> u64 {
    (seed ^ seed >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_differ_from_subscription_to_subscription() {
        let mut waits = vec![vec![]; 8];
        for seed in 0..1000 {
            let mut backoff = Backoff::default();
            waits.iter_mut().for_each(|waits| waits.push(backoff.failed(seed)));
            backoff.succeeded();
            assert!(backoff.failed(seed) <= FIRST_MS);
        }
        for (n, waits) in waits.iter_mut().enumerate() {
            let most = FIRST_MS << n.min(4);
            assert!(waits.iter().all(|wait| (most / 2..=most).contains(wait)), "failure {n}");
            waits.sort_unstable();
            waits.dedup();
            assert!(waits.len() > 300, "{n}: {} different waits of 1000 subscriptions", waits.len());
        }
    }
}
