//! The rebuild of an inbox that is missing: a reader's first visit, or the first after a long sleep.
//!
//! ```text
//!   followees ─▶ token + progress ─▶ edges and outboxes, one snapshot, cut at the progress ─▶ swap
//!       ▲                                         │ an author without a cut                    │
//!       └─────────────────────────────────────────┴──────────────── the token is gone ─────────┘
//! ```
//!
//! Nothing is served before the swap. A push that passes the reader by meanwhile, or a follow step
//! that finds no inbox, deletes the token, and the rebuild starts over.

use super::{Feeds, TRIES, contended};
use crate::archive::{Built, FeedState};
use crate::error::Result;
use crate::inboxes::{Build, KEEP};
use crate::{Entry, Epoch, InboxKey, Op, UserNo, failpoint};

impl Feeds {
    /// Makes sure that the inbox exists.
    pub async fn rebuild(&self, key: InboxKey) -> Result<()> {
        let _one_at_a_time = self.build_lock(key).lock().await;
        for _ in 0..TRIES {
            let authors = self.archive.followees(key.reader).await?;
            let token = self.archive.next_epoch().await?;
            let Some(progress) = self.inboxes.begin_build(key, token, &authors).await? else {
                return Ok(());
            };
            failpoint::hit("build-begun");
            let cuts: Vec<_> = authors.into_iter().zip(progress).collect();
            match self.archive.build(key, &cuts, self.backfill, self.named.cap(key.feed).unwrap_or(KEEP)).await? {
                Built::CutsMissing(authors) => tracing::debug!(?authors, "followed during a rebuild"),
                Built::State(mut state) => {
                    self.reopen(key, std::mem::take(&mut state.lagging)).await?;
                    if self.inboxes.finish_build(self.swap(key, token, state)).await? {
                        failpoint::hit("build-swapped");
                        return Ok(());
                    }
                }
            }
        }
        Err(contended("a rebuild"))
    }

    /// Push behind the outbox must be outstanding, durably, before a log relies on it. Mostly it is
    /// only running, and has caught up by now; then there is nothing to reopen.
    async fn reopen(&self, key: InboxKey, lagging: Vec<UserNo>) -> Result<()> {
        let bucket = key.reader.bucket(self.inboxes.buckets());
        let of: Vec<_> = lagging.iter().map(|author| (*author, bucket)).collect();
        let mut behind = Vec::new();
        for (author, progress) in lagging.into_iter().zip(self.inboxes.progress(&of).await?) {
            if !self.archive.outbox(author, progress.done, 1).await?.records.is_empty() {
                behind.push(author);
            }
        }
        if behind.is_empty() { Ok(()) } else { self.archive.reopen(&behind).await }
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
        let FeedState { built_at, floor, taken, .. } = state;
        Build { key, epoch, built_at, entries, floor, taken, until: self.kept_until() }
    }
}
