//! The rebuild of an inbox that is missing: a reader's first visit, the first after a long sleep, or after a loss.
//!
//! ```text
//!   an epoch ─▶ progress of all followees ─▶ placeholder ─▶ edges and outboxes, one snapshot ─▶ swap, with the notes
//!       ▲                                                                                        │
//!       └─────────────────── the placeholder is gone: a loss, a discard, too many notes ─────────┘
//! ```
//!
//! Nothing is served before the swap. It brings everything that the snapshot shows, however far push is behind, so a
//! page is never short; where push is behind, the inbox remembers it.
//!
//! Nothing that comes between placeholder and swap makes the rebuild start over. A push step leaves its changes beside
//! the placeholder, and the swap takes them in. A follow step, or a delivery of addressed items, finds no inbox and a
//! build in flight: its worker builds the inbox too, and then goes on with an inbox that is there. So a placeholder
//! whose builder has died is taken up by the next worker or reader that finds it.
//!
//! A placeholder that stands is shared by all builders: the first one to finish swaps the inbox in. The changes that
//! were noted before a builder found the placeholder are in its snapshot, so its swap takes only the notes after those.
//!
//! The epoch is taken first: a store that loses the progress after it was read refuses a placeholder that is older than
//! the loss.

use futures_util::lock::{Mutex, MutexGuard};

use super::{Feeds, TRIES, contended};
use crate::archive::FeedState;
use crate::error::Result;
use crate::inboxes::{Begun, Build, KEEP};
use crate::jobs::Job;
use crate::{Entry, InboxKey, Millis, Op, OutboxSeq, UserNo, failpoint};

/// Locks by which one rebuild of a reader goes on at a time in this process. More would only do the same work.
pub(super) struct Building([Mutex<()>; 64]);

impl Default for Building {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Building {
    async fn lock(&self, key: InboxKey) -> MutexGuard<'_, ()> {
        self.0[key.reader.0 as usize % self.0.len()].lock().await
    }
}

impl Feeds {
    /// Makes sure that the inbox exists: builds it from the Archive if it is missing.
    pub async fn rebuild(&self, key: InboxKey) -> Result<()> {
        let _one_at_a_time = self.building.lock(key).await;
        // The task that held the lock before has mostly built the inbox.
        if self.inboxes.stand(key).await?.is_some() {
            return Ok(());
        }
        let (bucket, limit) = (key.reader.bucket(self.inboxes.buckets()), self.named().cap(key.feed).unwrap_or(KEEP));
        for _ in 0..TRIES {
            let placeholder = self.archive.next_epoch().await?;
            let of: Vec<_> =
                self.archive.followees(key.reader).await?.into_iter().map(|author| (author, bucket)).collect();
            let progress = self.inboxes.progress(&of).await?;
            let Some(begun) = self.inboxes.begin_build(key, placeholder).await? else { return Ok(()) };
            failpoint::hit("build-begun");
            let reached: Vec<_> =
                of.into_iter().zip(progress).map(|((author, _), progress)| (author, progress)).collect();
            let state = self.archive.build(key, &reached, self.backfill, limit).await?;
            self.reopen(key, &state.ahead).await?;
            if self.inboxes.finish_build(self.swap(key, begun, state)).await? {
                failpoint::hit("build-swapped");
                return Ok(());
            }
        }
        Err(contended("a rebuild"))
    }

    /// Reopens the push of authors where the inbox will be ahead of push: otherwise the inbox would remember for ever
    /// how far it is ahead. Mostly push is under way and has come that far by now; then nothing is reopened.
    async fn reopen(&self, key: InboxKey, ahead: &[(UserNo, OutboxSeq)]) -> Result<()> {
        let bucket = key.reader.bucket(self.inboxes.buckets());
        let of: Vec<_> = ahead.iter().map(|(author, _)| (*author, bucket)).collect();
        let progress = self.inboxes.progress(&of).await?;
        let behind = ahead.iter().zip(progress).filter(|((_, seq), progress)| progress.done < *seq);
        let behind: Vec<_> = behind.map(|((author, _), _)| *author).collect();
        if behind.is_empty() {
            return Ok(());
        }
        self.archive.reopen(&behind).await?;
        self.wake_workers(&behind).await;
        Ok(())
    }

    /// Puts jobs on the queue for authors whose fan-out was reopened. It may fail: the fan-out is outstanding in the
    /// Archive until it is done.
    async fn wake_workers(&self, authors: &[UserNo]) {
        let jobs: Vec<Job> = authors.iter().map(|author| Job::FanOut { author: *author }).collect();
        if let Some(queue) = &self.jobs
            && let Err(error) = queue.put(&jobs).await
        {
            tracing::debug!(%error, "reopened work could not be put on the queue; the sweep will");
        }
    }

    fn swap(&self, key: InboxKey, begun: Begun, state: FeedState) -> Build {
        let entries = state
            .adds
            .iter()
            .map(|add| Entry {
                op: Op::Add,
                author: add.author,
                outbox_seq: add.outbox_seq,
                generation: add.generation,
                key: add.key,
            })
            .collect();
        let FeedState { built_at, floor, taken, ahead, .. } = state;
        let Begun { placeholder: epoch, notes: notes_from } = begun;
        Build {
            key,
            epoch,
            built_at,
            entries,
            floor,
            taken,
            ahead,
            notes_from,
            until: self.retention.kept_until().unwrap_or(Millis::MAX),
        }
    }
}
