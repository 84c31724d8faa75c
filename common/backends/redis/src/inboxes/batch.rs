//! Calls about many inboxes at once: one script for the inboxes of each bucket, all buckets at the same time.

use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::Stand;
use feedgate_common::{Bucket, Epoch, InboxKey, Inboxes, Millis, Position, Progress, UserNo, Watermarks};
use futures_util::future::try_join_all;

use super::RedisInboxes;
use super::layout::{bucket_key, field, inbox_key, progress_of};

/// How many inboxes or authors one script looks at, so that none holds the server long.
const AT_ONCE: usize = 500;

/// Where an inbox stands, and how many entries its log holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub(super) at: Stand,
    pub(super) kept: u64,
}

impl Standing {
    /// Reads the five numbers that `scripts/stands.lua` answers for one inbox; `None` if there is no inbox.
    pub(super) fn of(numbers: &[u64]) -> Option<Self> {
        let &[epoch, offset, kept, pull, direct] = numbers else { return None };
        let at = Stand { head: Position { epoch: Epoch(epoch), offset }, taken: Watermarks { pull, direct } };
        (epoch > 0).then_some(Self { at, kept })
    }
}

impl RedisInboxes {
    /// Asks each bucket of its items, all buckets at the same time and [`AT_ONCE`] items in a call. Gives an answer for
    /// each item, in the order of the items. Fails if a call does, or answers with another number.
    async fn of_each<T: Copy, A, Asking: Future<Output = Result<Vec<A>>>>(
        &self,
        of: &[T],
        bucket_of: impl Fn(&T) -> Bucket,
        ask: impl Fn(Bucket, Vec<T>) -> Asking,
    ) -> Result<Vec<A>> {
        let mut buckets: Vec<(Vec<usize>, Vec<T>)> = vec![Default::default(); usize::from(self.buckets())];
        for (place, item) in of.iter().enumerate() {
            let (places, items) = &mut buckets[usize::from(bucket_of(item).0)];
            places.push(place);
            items.push(*item);
        }
        let ask = &ask;
        let asked = (0..self.buckets()).map(Bucket).zip(buckets).map(|(bucket, (places, items))| async move {
            let mut answers = Vec::with_capacity(items.len());
            for part in items.chunks(AT_ONCE) {
                answers.extend(ask(bucket, part.to_vec()).await?);
            }
            if answers.len() != items.len() {
                let (answers, items) = (answers.len(), items.len());
                return Err(StoreError::corrupt(format_args!("{items} items had {answers} answers")));
            }
            Ok(places.into_iter().zip(answers))
        });
        let mut all = Vec::from_iter(of.iter().map(|_| None));
        try_join_all(asked).await?.into_iter().flatten().for_each(|(place, answer)| all[place] = Some(answer));
        Ok(all.into_iter().flatten().collect())
    }

    /// How each of these inboxes stands, at once.
    pub(super) async fn standings(&self, keys: &[InboxKey]) -> Result<Vec<Option<Standing>>> {
        let ask = |bucket, keys: Vec<InboxKey>| async move {
            let mut numbers = self.run(&self.scripts.stands, bucket, &redis_keys(bucket, &keys), vec![]).await?;
            Ok(numbers.all_numbers()?.chunks_exact(5).map(Standing::of).collect())
        };
        self.of_each(keys, |key| self.bucket_of(*key), ask).await
    }

    /// How far the push of each of these authors has come in the bucket. A reader may follow hundreds of thousands of
    /// authors, so each call asks for some of them.
    pub(super) async fn progress_of(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        let ask = |bucket, of: Vec<(UserNo, Bucket)>| async move {
            let authors = of.iter().map(|(author, _)| field(*author));
            let arguments = std::iter::once(b"epoch".to_vec()).chain(authors).collect();
            let mut reply = self.run(&self.scripts.progress, bucket, &[bucket_key(bucket)], arguments).await?;
            reply.all_bytes()?.iter().map(|text| progress_of(text)).collect()
        };
        self.of_each(of, |(_, bucket)| *bucket, ask).await
    }

    /// Gives the keys of inboxes that exist or are being built.
    pub(super) async fn present_of(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        let ask = |bucket, keys: Vec<InboxKey>| async move {
            let mut found = self.run(&self.scripts.present, bucket, &redis_keys(bucket, &keys), vec![]).await?;
            // The script looks at the keys in their order.
            let found = found.all_numbers()?;
            Ok((0..keys.len() as u64).map(|at| found.binary_search(&at).is_ok()).collect())
        };
        let present = self.of_each(keys, |key| self.bucket_of(*key), ask).await?;
        Ok(keys.iter().zip(present).filter_map(|(key, present)| present.then_some(*key)).collect())
    }

    /// Puts off the time at which these inboxes expire. See `scripts/touch.lua`.
    pub(super) async fn expire_at(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        let until = &[until.to_string()];
        let ask = |bucket, keys: Vec<InboxKey>| async move {
            self.link.script(&self.scripts.touch, &redis_keys(bucket, &keys)[1..], until).await?;
            Ok(vec![(); keys.len()])
        };
        self.of_each(keys, |key| self.bucket_of(*key), ask).await.map(drop)
    }
}

/// The keys in Redis of the bucket and of these inboxes.
fn redis_keys(bucket: Bucket, inboxes: &[InboxKey]) -> Vec<Vec<u8>> {
    let inboxes = inboxes.iter().map(|key| inbox_key(bucket, *key));
    std::iter::once(bucket_key(bucket)).chain(inboxes).collect()
}
