//! Cuts a job into pieces of work, and finishes the job's event in the Archive once the pieces are done.
//!
//! ```text
//!   FanOut(author) ─▶ all buckets at once ──── few followers ────▶ finish the event up to what all have passed
//!                       └─▶ bucket 0 … bucket n, some at a time ─▶ finish the event up to the least they came to
//!   Edges(reader)  ─▶ a step of each of the reader's inboxes    ─▶ finish each edge up to the least that they took in
//!   Direct         ─▶ a step of each of the reader's inboxes    ─▶ finish the event up to the least of what was addressed
//! ```
//!
//! Buckets reach the outbox head at different moments, and the outbox may grow meanwhile. So a record is finished only
//! when *every* bucket has passed it. A turn takes a bounded number of steps. If records are left after a turn, or have
//! come meanwhile, the job goes to the end of the queue.

use std::sync::Arc;

use feedgate_common::archive::Event;
use feedgate_common::error::Result;
use feedgate_common::jobs::Job;
use feedgate_common::trace::Turn;
use feedgate_common::{Archive, Bucket, InboxKey, OutboxSeq, UserNo, failpoint};
use futures_util::{StreamExt, stream};

use crate::execute::{Executor, Reached};
use crate::fanout::direct::NOTHING;

/// Cuts jobs into pieces.
pub(crate) struct Dispatcher {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) executor: Executor,
    pub(crate) buckets: u16,
    pub(crate) buckets_at_once: usize,
}

impl Dispatcher {
    /// Carries out a job, or as much of it as one turn takes, and answers the events that are now finished in the
    /// Archive. After an error or a cancelled call the event is still outstanding, or its job will come again; every
    /// inbox is whole.
    pub(crate) async fn work_off(&self, job: Job) -> Result<Vec<Event>> {
        let turn = Turn::begin();
        let turn = turn.as_ref();
        let mut redo = 0;
        loop {
            let finished = match job {
                Job::FanOut { author } => vec![Event::Outbox { author, seq: self.fan_out(turn, author).await?, redo }],
                Job::Edge { reader, .. } | Job::Edges { reader } => self.executor.edges(reader).await?,
                Job::Direct { reader } => vec![self.executor.direct(turn, reader).await?],
            };
            let stays = self.archive.finish(&finished).await?;
            failpoint::hit("event-finished");
            // The Archive reopened the event meanwhile: the inboxes may have lost a step that this call had done.
            match stays.first() {
                Some(Event::Outbox { redo: again, .. }) => redo = *again,
                _ => return Ok(finished),
            }
        }
    }

    /// Whether the job has more to do after the events `finished`, which the job has just finished.
    pub(crate) async fn is_behind(&self, job: Job, finished: &[Event]) -> Result<bool> {
        if let Job::Edge { reader, .. } | Job::Edges { reader } = job {
            return Ok(!self.archive.edges_due(reader, 1).await?.is_empty());
        }
        Ok(match finished {
            [Event::Outbox { author, seq, .. }] => self.head(*author, *seq).await? > *seq,
            [Event::Direct { reader, seq }] => {
                self.archive.news(InboxKey::main(*reader), NOTHING, 1).await?.upto.direct > *seq
            }
            _ => false,
        })
    }

    /// The head of an outbox whose head was `seq` or greater. If the home has shared reads, this read is shared with
    /// other calls.
    async fn head(&self, author: UserNo, seq: OutboxSeq) -> Result<OutboxSeq> {
        match self.archive.ahead(author, 0, 0).await? {
            Some(ahead) => Ok(ahead.outbox.head),
            None => Ok(self.archive.outbox(author, seq, 1).await?.head),
        }
    }

    /// Advances all buckets of the author, and gives the last record that every bucket has passed. If one bucket fails,
    /// the others still advance.
    async fn fan_out(&self, turn: Option<&Turn>, author: UserNo) -> Result<OutboxSeq> {
        match self.executor.all_buckets(turn, author).await? {
            Some(head) => Ok(head),
            None => self.bucket_by_bucket(turn, author).await,
        }
    }

    async fn bucket_by_bucket(&self, turn: Option<&Turn>, author: UserNo) -> Result<OutboxSeq> {
        let reached: Vec<Result<Reached>> =
            stream::iter((0..self.buckets).map(|bucket| self.executor.bucket(turn, author, Bucket(bucket))))
                .buffer_unordered(self.buckets_at_once)
                .collect()
                .await;
        if let Some(head) = reached.iter().flatten().filter_map(|reached| reached.hot).max() {
            self.executor.hot(head).await;
        }
        reached.into_iter().try_fold(OutboxSeq::MAX, |least, reached| Ok(least.min(reached?.seq)))
    }
}
