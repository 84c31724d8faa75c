//! How many reads by HTTP each user, or each address, may have at once and begin per second.
//!
//! Invariant: memory is bounded by the number of keys that are reading or have just read. Other keys are forgotten when
//! the number of known keys reaches a bound, which is then set to twice the number of keys that are left.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::allowance::{Allowance, Rate};

/// Keys are not forgotten while fewer than this are known.
const KNOWN_MIN: usize = 1024;

/// Why a read may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMany {
    /// The key already has this many reads that have not ended.
    AtOnce(u32),
    /// The key may begin only this many reads per second.
    PerSec(u32),
}

/// The reads of each key, and how many a key may have.
pub(crate) struct Quotas<K> {
    known: Mutex<Known<K>>,
}

struct Known<K> {
    at_once: u32,
    per_sec: u32,
    quotas: HashMap<K, Quota, RandomState>,
    /// When this many keys are known, the idle ones are forgotten.
    full: usize,
}

#[derive(Debug, Default)]
struct Quota {
    reading: u32,
    allowance: Allowance,
}

/// A read that has begun. Dropping this ends it.
pub(crate) struct Ticket<K: Hash + Eq> {
    quotas: Arc<Quotas<K>>,
    key: K,
}

impl<K: Hash + Eq + Clone> Quotas<K> {
    /// Allows each key `at_once` reads at a time and `per_sec` new reads a second, and twice `per_sec` after a pause.
    pub(crate) fn new(at_once: u32, per_sec: u32) -> Arc<Self> {
        let known = Known { at_once, per_sec, quotas: HashMap::default(), full: KNOWN_MIN };
        Arc::new(Self { known: Mutex::new(known) })
    }

    /// Sets the limits of each key from now on; see [`Quotas::new`]. Reads that have begun go on and count.
    pub(crate) fn allow(&self, at_once: u32, per_sec: u32) {
        let mut known = self.known.lock();
        (known.at_once, known.per_sec) = (at_once, per_sec);
    }

    /// Begins a read of `key` at `now_ms`. If a limit is reached, gives this limit, and nothing is counted.
    pub(crate) fn begin(self: &Arc<Self>, key: K, now_ms: u64) -> Result<Ticket<K>, TooMany> {
        let mut known = self.known.lock();
        let (at_once, per_sec) = (known.at_once, known.per_sec);
        if known.quotas.len() >= known.full {
            known.quotas.retain(|_, quota| quota.reading > 0 || !quota.allowance.is_full(now_ms));
            known.full = KNOWN_MIN.max(known.quotas.len() * 2);
        }
        let quota = known.quotas.entry(key.clone()).or_default();
        if quota.reading >= at_once {
            return Err(TooMany::AtOnce(at_once));
        }
        if !quota.allowance.take(1, now_ms, Rate::twice(per_sec)) {
            return Err(TooMany::PerSec(per_sec));
        }
        quota.reading += 1;
        drop(known);
        Ok(Ticket { quotas: self.clone(), key })
    }
}

impl<K: Hash + Eq> Ticket<K> {
    /// Counts this read as `more` further reads of its key, even if the key may not begin so many now.
    pub(crate) fn costs(&self, more: u32, now_ms: u64) {
        let mut known = self.quotas.known.lock();
        let rate = Rate::twice(known.per_sec);
        if let Some(quota) = known.quotas.get_mut(&self.key) {
            quota.allowance.owe(more, now_ms, rate);
        }
    }
}

impl<K: Hash + Eq> Drop for Ticket<K> {
    fn drop(&mut self) {
        if let Some(quota) = self.quotas.known.lock().quotas.get_mut(&self.key) {
            quota.reading -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_at_once_and_per_second_are_counted_for_each_by_itself() {
        let quotas = Quotas::new(3, 5);
        let held: Vec<_> = (0..3).map(|_| quotas.begin("ann", 0).ok().unwrap()).collect();
        assert_eq!(quotas.begin("ann", 0).err(), Some(TooMany::AtOnce(3)));
        assert!(quotas.begin("bob", 0).is_ok());
        drop(held);
        let begun = (0..20).filter(|_| quotas.begin("ann", 0).is_ok()).count();
        assert_eq!(begun, 7, "three of a burst of ten had begun");
        assert_eq!(quotas.begin("ann", 0).err(), Some(TooMany::PerSec(5)));
        assert_eq!((0..20).filter(|_| quotas.begin("ann", 1000).is_ok()).count(), 5);
    }

    #[test]
    fn a_read_that_costs_more_leaves_fewer_to_begin() {
        let quotas = Quotas::new(100, 10);
        let begin = |now| quotas.begin("eve", now).inspect(|ticket| ticket.costs(9, now)).is_ok();
        assert_eq!((0..20).filter(|_| begin(0)).count(), 2);
        assert_eq!((0..20).filter(|_| begin(1000)).count(), 1);
        assert!(quotas.begin("ann", 0).is_ok());
    }

    #[test]
    fn another_limit_holds_at_once_and_for_reads_that_have_begun() {
        let quotas = Quotas::new(1, 100);
        let held = quotas.begin("ann", 0).ok().unwrap();
        quotas.allow(2, 1);
        let second = quotas.begin("ann", 0).ok().unwrap();
        assert_eq!(quotas.begin("ann", 0).err(), Some(TooMany::AtOnce(2)));
        drop((held, second));
        assert_eq!(quotas.begin("ann", 0).err(), Some(TooMany::PerSec(1)));
        quotas.allow(2, 100);
        assert!(quotas.begin("ann", 1000).is_ok());
    }

    #[test]
    fn i18_who_is_idle_is_forgotten_and_who_reads_is_not() {
        let quotas = Quotas::new(1, 1000);
        let _reads = quotas.begin(0, 0).ok().unwrap();
        for n in 1..100_000 {
            drop(quotas.begin(n, n * 10));
        }
        assert!(quotas.known.lock().quotas.len() <= KNOWN_MIN);
        assert_eq!(quotas.begin(0, 1_000_000).err(), Some(TooMany::AtOnce(1)));
    }

    #[test]
    fn i18_who_has_used_up_the_rate_is_not_forgotten_to_make_room() {
        let quotas = Quotas::new(1, 5);
        let begun = (0..20).filter(|_| quotas.begin(0, 0).is_ok()).count();
        assert_eq!(begun, 10);
        let others: Vec<_> = (1..=KNOWN_MIN).map(|n| quotas.begin(n, 0).ok().unwrap()).collect();
        assert_eq!(quotas.begin(0, 0).err(), Some(TooMany::PerSec(5)));
        assert_eq!(quotas.known.lock().full, 2 * KNOWN_MIN, "there is room for as many again");
        drop(others);
    }
}
