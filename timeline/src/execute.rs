//! The smallest pieces of work: one bucket of one author's fan-out, one edge of one reader.
//!
//! The doorbell rings after each step has committed, so that the readers of a long fan-out need not wait
//! for its end.

use std::sync::Arc;

use feedgate_common::archive::Event;
use feedgate_common::error::Result;
use feedgate_common::feed::{Feeds, Left, Step};
use feedgate_common::{Bucket, Doorbell, OutboxSeq, UserNo, failpoint};
use futures_util::future::join_all;

/// Carries out steps and tells who has to know.
pub(crate) struct Executor {
    feeds: Arc<Feeds>,
    doorbell: Arc<dyn Doorbell>,
}

impl Executor {
    pub(crate) fn new(feeds: Arc<Feeds>, doorbell: Arc<dyn Doorbell>) -> Self {
        Self { feeds, doorbell }
    }

    /// Advances every bucket to the outbox head by rounds, and answers where that was; `None` if bucket by
    /// bucket is the way. Cancelling loses nothing.
    pub(crate) async fn all_buckets(&self, author: UserNo) -> Result<Option<OutboxSeq>> {
        loop {
            let round = self.feeds.advance_all(author).await?;
            join_all(round.grown.iter().map(|growth| self.doorbell.ring(growth))).await;
            match round.left {
                Left::Nothing(head) => {
                    failpoint::hit("bucket-finished");
                    return Ok(Some(head));
                }
                Left::AnotherRound => {}
                Left::BucketByBucket => return Ok(None),
            }
        }
    }

    /// Advances (author, bucket) to the outbox head and answers where that was. Cancelling loses nothing.
    pub(crate) async fn bucket(&self, author: UserNo, bucket: Bucket) -> Result<OutboxSeq> {
        loop {
            match self.feeds.advance(author, bucket).await? {
                Step::Moved(growth) if growth.inboxes.is_empty() => {}
                Step::Moved(growth) => self.doorbell.ring(&growth).await,
                Step::AtHead(head) => {
                    failpoint::hit("bucket-finished");
                    return Ok(head);
                }
            }
        }
    }

    /// Brings the reader's inbox to the edge as it is now, and answers what is thereby finished.
    /// Cancelling loses nothing.
    pub(crate) async fn edge(&self, reader: UserNo, author: UserNo) -> Result<Event> {
        let (event, grown) = self.feeds.step_edge(reader, author).await?;
        if let Some(growth) = grown {
            self.doorbell.ring(&growth).await;
        }
        Ok(event)
    }
}
