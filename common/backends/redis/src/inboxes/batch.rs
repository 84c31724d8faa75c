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
    /// How each of these inboxes stands, at once.
    pub(super) async fn standings(&self, keys: &[InboxKey]) -> Result<Vec<Option<Standing>>> {
        let groups = by_bucket(keys, self.buckets(), |key| self.bucket_of(*key)).map(async |(bucket, group)| {
            let mut stands = Vec::with_capacity(group.len());
            for part in group.chunks(AT_ONCE) {
                let inboxes = part.iter().map(|(_, key)| inbox_key(bucket, *key));
                let keys: Vec<_> = std::iter::once(bucket_key(bucket)).chain(inboxes).collect();
                let numbers = self.run(&self.scripts.stands, bucket, &keys, vec![]).await?.all_numbers()?;
                stands.extend(part.iter().map(|(at, _)| *at).zip(numbers.chunks_exact(5).map(Standing::of)));
            }
            Ok::<_, StoreError>(stands)
        });
        let mut stands = vec![None; keys.len()];
        try_join_all(groups).await?.into_iter().flatten().for_each(|(at, stand)| stands[at] = stand);
        Ok(stands)
    }

    /// How far the push of these authors has come in one bucket. A reader may follow hundreds of thousands of authors,
    /// so each call asks for some of them.
    pub(super) async fn progress_in(&self, bucket: Bucket, authors: &[UserNo]) -> Result<Vec<Progress>> {
        let mut reached = Vec::with_capacity(authors.len());
        for part in authors.chunks(AT_ONCE) {
            let arguments = std::iter::once(b"epoch".to_vec()).chain(part.iter().map(|author| field(*author)));
            let mut reply =
                self.run(&self.scripts.progress, bucket, &[bucket_key(bucket)], arguments.collect()).await?;
            for text in reply.all_bytes()? {
                reached.push(progress_of(&text)?);
            }
        }
        Ok(reached)
    }

    /// Gives the keys of inboxes that exist or are being built.
    pub(super) async fn present_of(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        let groups = by_bucket(keys, self.buckets(), |key| self.bucket_of(*key)).map(async |(bucket, group)| {
            let mut present = vec![];
            for part in group.chunks(AT_ONCE) {
                let inboxes = part.iter().map(|(_, key)| inbox_key(bucket, *key));
                let keys: Vec<_> = std::iter::once(bucket_key(bucket)).chain(inboxes).collect();
                let found = self.run(&self.scripts.present, bucket, &keys, vec![]).await?.all_numbers()?;
                present.extend(found.iter().filter_map(|at| part.get(*at as usize)).map(|(_, key)| *key));
            }
            Ok::<_, StoreError>(present)
        });
        Ok(try_join_all(groups).await?.concat())
    }

    /// Puts off the time at which these inboxes expire. See `scripts/touch.lua`.
    pub(super) async fn expire_at(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        let until = [until.to_string()];
        let groups = by_bucket(keys, self.buckets(), |key| self.bucket_of(*key)).map(async |(bucket, group)| {
            for part in group.chunks(AT_ONCE) {
                let keys: Vec<_> = part.iter().map(|(_, key)| inbox_key(bucket, *key)).collect();
                self.link.script(&self.scripts.touch, &keys, &until).await?;
            }
            Ok::<_, StoreError>(())
        });
        try_join_all(groups).await.map(drop)
    }
}

/// The items of each bucket, with their places in the list of all items.
pub(super) fn by_bucket<T: Copy>(
    of: &[T],
    buckets: u16,
    bucket_of: impl Fn(&T) -> Bucket,
) -> impl Iterator<Item = (Bucket, Vec<(usize, T)>)> {
    let mut groups: Vec<Vec<(usize, T)>> = vec![Vec::new(); usize::from(buckets)];
    of.iter().enumerate().for_each(|(at, each)| groups[usize::from(bucket_of(each).0)].push((at, *each)));
    (0..buckets).map(Bucket).zip(groups).filter(|(_, group)| !group.is_empty())
}
