//! Counts the inboxes and their entries when somebody asks.
//!
//! ```text
//!   SCAN of each master ─▶ at most SAMPLE keys ─▶ which are inboxes of this life? ─▶ × all keys / keys seen
//! ```
//!
//! Redis does not tell when keys expire, so counters kept beside the keys would become wrong. The counts are exact if
//! no master has more than about [`SAMPLE`] keys, and estimated otherwise: SCAN gives keys in the order of their
//! hashes, which is random.
//!
//! Invariant: however often somebody asks, one sample is taken at a time, and a sample of more than [`FEW`] inboxes is
//! taken at most once in [`KEPT`].

use std::time::Duration;

use feedgate_common::Inboxes;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::InboxCounts;
use redis::{FromRedisValue, Value, cmd};
use tokio::time::Instant;

use super::RedisInboxes;
use super::layout::inbox_of;

/// About how many keys of a master are looked at: this takes a few ms of the master's time.
const SAMPLE: usize = 4096;

/// A sample of at most this many inboxes is taken anew each time that somebody asks.
const FEW: usize = 1000;

/// How long a sample of more than [`FEW`] inboxes is used.
const KEPT: Duration = Duration::from_secs(5);

/// The numbers that were found in some keys.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    taken: Instant,
    /// How many keys were met, of whatever kind.
    seen: u64,
    /// Whether these were all keys.
    whole: bool,
    /// How many inboxes were looked at; some of them may be of an earlier life.
    looked_at: usize,
    found: InboxCounts,
}

impl Sample {
    fn serves(&self, now: Instant) -> bool {
        self.looked_at > FEW && now < self.taken + KEPT
    }

    /// The counts for all keys of Redis, if their number is `all`.
    fn of(&self, all: u64) -> InboxCounts {
        if self.whole { self.found } else { scaled(self.found, self.seen, all) }
    }
}

impl RedisInboxes {
    pub(super) async fn census(&self) -> Result<InboxCounts> {
        let sizes = self.link.on_masters(&cmd("DBSIZE")).await?;
        let all = sizes.into_iter().map(read::<u64>).sum::<Result<u64>>()?;
        let mut last = self.sample.lock().await;
        let sample = match last.filter(|last| last.serves(Instant::now())) {
            Some(last) => last,
            None => self.sampled().await?,
        };
        *last = Some(sample);
        Ok(sample.of(all))
    }

    async fn sampled(&self) -> Result<Sample> {
        let taken = Instant::now();
        let scan = cmd("SCAN").arg(0).arg("COUNT").arg(SAMPLE).take();
        let found = self.link.on_masters(&scan).await?;
        let found: Vec<(u64, Vec<Vec<u8>>)> = found.into_iter().map(read).collect::<Result<_>>()?;
        let seen = found.iter().map(|(_, keys)| keys.len() as u64).sum();
        let whole = found.iter().all(|(cursor, _)| *cursor == 0);
        let keys: Vec<_> =
            found.iter().flat_map(|(_, keys)| keys).filter_map(|key| inbox_of(key, self.buckets())).collect();
        let stands = self.standings(&keys).await?;
        let found = stands.iter().flatten().fold(InboxCounts::default(), |sum, stands| InboxCounts {
            inboxes: sum.inboxes + 1,
            entries: sum.entries + stands.kept,
        });
        Ok(Sample { taken, seen, whole, looked_at: keys.len(), found })
    }
}

fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    redis::from_redis_value(value).map_err(StoreError::corrupt)
}

/// What `all` keys hold if `seen` of them hold `sample`.
fn scaled(sample: InboxCounts, seen: u64, all: u64) -> InboxCounts {
    let scale = |n: u64| (u128::from(n) * u128::from(all) / u128::from(seen.max(1))) as u64;
    InboxCounts { inboxes: scale(sample.inboxes), entries: scale(sample.entries) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_many_inboxes_serves_for_a_while_and_grows_with_the_keys() {
        let taken = Instant::now();
        let found = InboxCounts { inboxes: 2000, entries: 10_000 };
        let many = Sample { taken, seen: 4000, whole: false, looked_at: 2001, found };
        assert!(many.serves(taken + KEPT - Duration::from_millis(1)) && !many.serves(taken + KEPT));
        assert_eq!(many.of(8000), InboxCounts { inboxes: 4000, entries: 20_000 });
        assert_eq!(Sample { whole: true, ..many }.of(8000), found, "expired keys are counted until they are removed");
        assert!(!Sample { looked_at: FEW, ..many }.serves(taken), "few are counted exactly for whoever asks");
    }
}
