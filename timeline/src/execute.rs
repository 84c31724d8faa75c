//! The smallest pieces of work: one bucket of one author's fan-out, outstanding edges of one reader.
//!
//! The doorbell rings after each step has committed, so that the readers of a long fan-out need not wait
//! for its end. A piece is bounded: what is left of an author who posts all the time is the next job's.

use std::sync::Arc;

use feedgate_common::archive::{Event, PullHead};
use feedgate_common::doorbell::Growth;
use feedgate_common::error::Result;
use feedgate_common::{Bucket, Doorbell, OutboxSeq, UserNo, failpoint};
use futures_util::future::join_all;

use crate::Pulse;
use crate::fanout::{FanOut, Left, Step};

/// Rounds of all buckets in one turn.
const ROUNDS: usize = 4;

/// Steps of a bucket in one turn.
const STEPS: usize = 8;

/// How far one bucket has come.
pub(crate) struct Reached {
    /// Every record up to here has reached it: the outbox head, or what a turn comes to.
    pub(crate) seq: OutboxSeq,
    /// The author, if records of route pull were passed by: who is online is to be told, when all buckets are through.
    pub(crate) hot: Option<PullHead>,
}

/// Carries out steps and tells who has to know.
pub(crate) struct Executor {
    fan_out: FanOut,
    doorbell: Arc<dyn Doorbell>,
    pulse: Arc<Pulse>,
}

impl Executor {
    pub(crate) fn new(fan_out: FanOut, doorbell: Arc<dyn Doorbell>, pulse: Arc<Pulse>) -> Self {
        Self { fan_out, doorbell, pulse }
    }

    /// Advances every bucket towards the outbox head by [`ROUNDS`] at most, and answers which record all have passed;
    /// `None` if bucket by bucket is the way. Cancelling loses nothing.
    pub(crate) async fn all_buckets(&self, author: UserNo) -> Result<Option<OutboxSeq>> {
        let mut passed = 0;
        for _ in 0..ROUNDS {
            let round = self.fan_out.advance_all(author).await?;
            if let Some(head) = round.hot {
                self.doorbell.hot(head).await;
            }
            join_all(together(round.grown).iter().map(|growth| self.doorbell.ring(growth))).await;
            match round.left {
                Left::Nothing(head) => {
                    failpoint::hit("bucket-finished");
                    return Ok(Some(head));
                }
                Left::AnotherRound(least) => {
                    self.pulse.stepped();
                    passed = least;
                }
                Left::BucketByBucket => return Ok(None),
            }
        }
        Ok(Some(passed))
    }

    /// Advances (author, bucket) towards the outbox head by [`STEPS`] at most, and answers where it stands then.
    /// Cancelling loses nothing.
    pub(crate) async fn bucket(&self, author: UserNo, bucket: Bucket) -> Result<Reached> {
        let mut hot = None;
        for _ in 0..STEPS {
            match self.fan_out.advance(author, bucket).await? {
                Step::Passed(passed) => hot = hot.max(passed),
                Step::Moved(growth) if growth.inboxes.is_empty() => {}
                Step::Moved(growth) => self.doorbell.ring(&growth).await,
                Step::AtHead(head) => {
                    failpoint::hit("bucket-finished");
                    return Ok(Reached { seq: head, hot });
                }
            }
            self.pulse.stepped();
        }
        let stands = self.fan_out.inboxes().progress(&[(author, bucket)]).await?[0];
        Ok(Reached { seq: stands.done, hot })
    }

    /// Tells every node that an author has posted something that is pulled.
    pub(crate) async fn hot(&self, head: PullHead) {
        self.doorbell.hot(head).await;
    }

    /// Brings the reader's inboxes to outstanding edges as they are now, and answers what is thereby finished; nothing if
    /// none is outstanding. Cancelling loses nothing.
    pub(crate) async fn edges(&self, reader: UserNo) -> Result<Vec<Event>> {
        let (finished, grown) = self.fan_out.step_edges(reader).await?;
        self.tell(grown).await;
        Ok(finished)
    }

    /// Brings what is addressed to the reader to the reader's inboxes, and answers what is thereby finished. Cancelling
    /// loses nothing.
    pub(crate) async fn direct(&self, reader: UserNo) -> Result<Event> {
        let (event, grown) = self.fan_out.take_direct(reader).await?;
        self.tell(grown).await;
        Ok(event)
    }

    async fn tell(&self, grown: Vec<Growth>) {
        for growth in grown {
            self.doorbell.ring(&growth).await;
        }
    }
}

/// Growths by the same records are one, so that a node is told of them once, whatever the number of buckets.
fn together(grown: Vec<Growth>) -> Vec<Growth> {
    let mut merged: Vec<Growth> = vec![];
    for growth in grown {
        match merged.iter_mut().find(|other| other.records == growth.records) {
            Some(other) => other.inboxes.extend(growth.inboxes),
            None => merged.push(growth),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use feedgate_common::change::Route;
    use feedgate_common::inboxes::Grown;
    use feedgate_common::{DisplayKey, Epoch, FeedId, InboxKey, ItemId, Op, Position, Record};

    use super::*;

    fn growth(seq: OutboxSeq, readers: &[u32]) -> Growth {
        let key = DisplayKey { rank: 0, item: ItemId(seq) };
        let head = Position { epoch: Epoch(1), offset: 1 };
        let grown = |reader: &u32| Grown { key: InboxKey::main(UserNo(*reader)), head, appended: 1, generation: 1 };
        Growth {
            author: UserNo(9),
            records: vec![Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key }],
            inboxes: readers.iter().map(grown).collect(),
        }
    }

    #[test]
    fn buckets_that_grew_by_the_same_records_ring_once_and_others_by_themselves() {
        let rung = together(vec![growth(1, &[1, 17]), growth(2, &[2]), growth(1, &[3])]);
        assert_eq!(rung, [growth(1, &[1, 17, 3]), growth(2, &[2])]);
    }
}
