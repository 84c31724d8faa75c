//! How inboxes are kept for some time, and dropped when that time is over.
//!
//! ```text
//!   touch until t     kept until t or later? nothing. Else one step: until t, and an eighth of the way to it longer
//!   expire at t       a bucket at a time, some inboxes at a time: one step drops those that are still past
//! ```
//!
//! So a promise to keep an inbox is as durable as every step. A reader who is always online costs one small step in an
//! eighth of the time for which inboxes are kept (21 hours of a week), and an inbox may stay an eighth longer.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use feedgate_common::error::Result;
use feedgate_common::inboxes::STEP_MAX;
use feedgate_common::{Bucket, InboxKey, Millis};
use futures_util::future::try_join_all;

use super::EmbeddedInboxes;
use super::bucket::{Answer, Step};
use super::until::Until;

/// An inbox is kept longer than asked, by one eighth of the time from now to the moment asked for.
const LONGER: Millis = 8;

/// How many inboxes are looked at, and dropped at most, while a bucket is locked once.
const SOME: usize = 256;

/// The moment that is stored for an inbox to be kept until `until`: a little later, so that most touches need no step.
pub(super) fn kept_from_now(until: Millis) -> Until {
    let longer = until.saturating_sub(now()).max(0) / LONGER;
    Until::at_least(until.saturating_add(longer))
}

#[expect(clippy::disallowed_methods, reason = "this is the clock of the module")]
pub(super) fn now() -> Millis {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(now.as_millis()).unwrap_or(Millis::MAX)
}

impl EmbeddedInboxes {
    /// Does what [`Inboxes::touch`](feedgate_common::Inboxes::touch) asks for.
    pub(super) async fn keep(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        let (least, until) = (Until::at_least(until), kept_from_now(until));
        let mut shares = vec![Vec::new(); self.shared.buckets.len()];
        for key in keys {
            let bucket = key.reader.bucket(self.shared.buckets.len() as u16);
            if self.bucket(bucket).inboxes.get(key).is_some_and(|inbox| inbox.until < least) {
                shares[usize::from(bucket.0)].push(*key);
            }
        }
        let steps = shares.iter().flat_map(|share| share.chunks(STEP_MAX));
        try_join_all(steps.map(|keys| self.step(Step::Touch(keys.to_vec(), until)))).await.map(drop)
    }

    /// Does what [`Inboxes::discard_expired`](feedgate_common::Inboxes::discard_expired) asks for. If a search reached
    /// its limit, the next search goes on in the bucket where the first one ended.
    pub(super) async fn expire(&self, now: Millis, limit: usize) -> Result<usize> {
        let (buckets, mut gone) = (self.shared.buckets.len() as u16, 0);
        for _ in 0..buckets {
            let bucket = Bucket(self.searched.load(Ordering::Relaxed) % buckets);
            gone += self.expire_in(bucket, Until::at_most(now), limit.saturating_sub(gone)).await?;
            if gone >= limit {
                break;
            }
            self.searched.store((bucket.0 + 1) % buckets, Ordering::Relaxed);
        }
        Ok(gone)
    }

    async fn expire_in(&self, bucket: Bucket, now: Until, limit: usize) -> Result<usize> {
        let all: Vec<InboxKey> = self.bucket(bucket).inboxes.keys().copied().collect();
        let mut gone = 0;
        for some in all.chunks(SOME) {
            let past = self.past(bucket, some, now, limit - gone);
            if past.is_empty() {
                tokio::task::yield_now().await;
                continue;
            }
            match self.step(Step::Expire(past, now)).await? {
                Answer::Expired(these) => gone += these,
                other => unreachable!("an expiry answered {other:?}"),
            }
            if gone >= limit {
                break;
            }
        }
        Ok(gone)
    }

    fn past(&self, bucket: Bucket, keys: &[InboxKey], now: Until, limit: usize) -> Vec<InboxKey> {
        let bucket = self.bucket(bucket);
        let past = keys.iter().filter(|key| bucket.inboxes.get(key).is_some_and(|inbox| inbox.until <= now));
        past.take(limit).copied().collect()
    }
}
