//! How many inboxes there are and how much they hold, found out when somebody asks.
//!
//! ```text
//!   SCAN of each master ─▶ at most SAMPLE keys ─▶ which are inboxes of this life? ─▶ × all keys / keys seen
//! ```
//!
//! Keys expire without a word, so counts kept beside them would go wrong. These are exact where no master has more than
//! [`SAMPLE`] keys, and an estimate where one has: SCAN meets keys in the order of their hashes, which is a random one.

use feedgate_common::Inboxes;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::InboxCounts;
use futures_util::future::try_join;
use redis::{FromRedisValue, Value, cmd};

use super::RedisInboxes;
use super::layout::inbox_of;

/// How many keys of a master are looked at, about: a few ms of its time.
const SAMPLE: usize = 4096;

impl RedisInboxes {
    pub(super) async fn census(&self) -> Result<InboxCounts> {
        let scan = cmd("SCAN").arg(0).arg("COUNT").arg(SAMPLE).take();
        let size = cmd("DBSIZE");
        let (found, sizes) = try_join(self.link.on_masters(&scan), self.link.on_masters(&size)).await?;
        let found: Vec<(u64, Vec<Vec<u8>>)> = found.into_iter().map(read).collect::<Result<_>>()?;
        let sizes: Vec<u64> = sizes.into_iter().map(read).collect::<Result<_>>()?;
        let (seen, all) = (found.iter().map(|(_, keys)| keys.len() as u64).sum(), sizes.into_iter().sum());
        let whole = found.iter().all(|(cursor, _)| *cursor == 0);
        let keys: Vec<_> =
            found.iter().flat_map(|(_, keys)| keys).filter_map(|key| inbox_of(key, self.buckets())).collect();
        let stands = self.standings(&keys).await?;
        let sample = stands.iter().flatten().fold(InboxCounts::default(), |sum, stands| InboxCounts {
            inboxes: sum.inboxes + 1,
            entries: sum.entries + stands.kept,
        });
        Ok(if whole { sample } else { scaled(sample, seen, all) })
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
