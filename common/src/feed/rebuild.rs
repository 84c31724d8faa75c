//! The rebuild of an inbox that is missing: a reader's first visit, the first after a long sleep, or after a loss.
//!
//! ```text
//!   an epoch ─▶ progress of all followees ─▶ token ─▶ edges and outboxes, one snapshot ─▶ swap
//!       ▲                                                                                  │
//!       └───────────────────────────── the token is gone ──────────────────────────────────┘
//! ```
//!
//! Nothing is served before the swap. It brings everything that the snapshot shows, however far push is behind, so a page
//! is never short; where push is behind, the inbox remembers it. A push that passes the reader by meanwhile, or a follow
//! step that finds no inbox, deletes the token, and the rebuild starts over.
//!
//! The epoch is taken first: a store that loses the progress after it was read refuses a token that is older than the loss.

use super::{Feeds, TRIES, contended};
use crate::archive::FeedState;
use crate::error::Result;
use crate::inboxes::{Build, KEEP};
use crate::{Entry, Epoch, InboxKey, Op, OutboxSeq, UserNo, failpoint};

impl Feeds {
    /// Makes sure that the inbox exists.
    pub async fn rebuild(&self, key: InboxKey) -> Result<()> {
        let _one_at_a_time = self.build_lock(key).lock().await;
        let (bucket, limit) = (key.reader.bucket(self.inboxes.buckets()), self.named.cap(key.feed).unwrap_or(KEEP));
        for _ in 0..TRIES {
            let token = self.archive.next_epoch().await?;
            let of: Vec<_> =
                self.archive.followees(key.reader).await?.into_iter().map(|author| (author, bucket)).collect();
            let progress = self.inboxes.progress(&of).await?;
            let Some(token) = self.inboxes.begin_build(key, token).await? else { return Ok(()) };
            failpoint::hit("build-begun");
            let reached: Vec<_> =
                of.into_iter().zip(progress).map(|((author, _), progress)| (author, progress)).collect();
            let state = self.archive.build(key, &reached, self.backfill, limit).await?;
            self.reopen(key, &state.ahead).await?;
            if self.inboxes.finish_build(self.swap(key, token, state)).await? {
                failpoint::hit("build-swapped");
                return Ok(());
            }
        }
        Err(contended("a rebuild"))
    }

    /// Push that is behind what the inbox will hold is to come up with it: else the inbox would remember for ever how far it
    /// is ahead. Mostly push is only running, and has come that far by now; then there is nothing to reopen.
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

    fn swap(&self, key: InboxKey, epoch: Epoch, state: FeedState) -> Build {
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
        Build { key, epoch, built_at, entries, floor, taken, ahead, until: self.kept_until() }
    }
}
