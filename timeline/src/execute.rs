//! The smallest pieces of work: one bucket of one author's fan-out, outstanding edges of one reader.
//!
//! The doorbell rings after each step has committed, so the readers of a long fan-out need not wait for its end. A
//! piece is bounded: if an author posts all the time, the next job does what is left.

use std::sync::Arc;

use feedgate_common::archive::{Event, PullHead};
use feedgate_common::doorbell::Growth;
use feedgate_common::error::Result;
use feedgate_common::trace::{self, Turn};
use feedgate_common::{Bucket, Doorbell, OutboxSeq, UserNo, failpoint};
use futures_util::future::join_all;

use crate::Pulse;
use crate::fanout::{FanOut, Left, Step};
use crate::metrics::Metrics;

/// Rounds of all buckets in one turn that begin where the inboxes stand.
const ROUNDS: usize = 4;

/// Steps of a bucket in one turn.
const STEPS: usize = 8;

/// How far one bucket has come.
pub(crate) struct Reached {
    /// Every record up to this one has reached the bucket: the outbox head, or less if the turn ended before.
    pub(crate) seq: OutboxSeq,
    /// The author, if the bucket passed by records of route pull. Readers who are online are told when all buckets are
    /// done.
    pub(crate) hot: Option<PullHead>,
}

/// Carries out steps, and rings the doorbell for the inboxes that have grown.
pub(crate) struct Executor {
    pub(crate) fan_out: FanOut,
    doorbell: Arc<dyn Doorbell>,
    pulse: Arc<Pulse>,
    metrics: Metrics,
}

impl Executor {
    pub(crate) fn new(fan_out: FanOut, doorbell: Arc<dyn Doorbell>, pulse: Arc<Pulse>, metrics: Metrics) -> Self {
        Self { fan_out, doorbell, pulse, metrics }
    }

    /// Advances all buckets together towards the outbox head, and gives the last record that all have passed: one round
    /// from where events are finished, then [`ROUNDS`] rounds at most from where the inboxes stand. Gives `None` if
    /// each bucket must be advanced by itself. Cancelling loses nothing.
    pub(crate) async fn all_buckets(&self, turn: Option<&Turn>, author: UserNo) -> Result<Option<OutboxSeq>> {
        let mut passed = 0;
        for nth in 0..=ROUNDS {
            let began = trace::began();
            let round = match nth {
                0 => self.fan_out.advance_unfinished(author).await?,
                _ => self.fan_out.advance_all(author).await?,
            };
            if let Some(head) = round.hot {
                self.doorbell.hot(head).await;
            }
            round.grown.iter().for_each(|growth| self.metrics.steps.add(growth.inboxes.len() as u64));
            let mut grown = together(round.grown);
            grown.iter_mut().for_each(|growth| stepped(turn, began, growth));
            join_all(grown.iter().map(|growth| self.doorbell.ring(growth))).await;
            match round.left {
                Left::Nothing(head) => {
                    failpoint::hit("bucket-finished");
                    return Ok(Some(head));
                }
                Left::AnotherRound(least) => {
                    if least > passed {
                        self.pulse.stepped();
                    }
                    passed = least;
                }
                Left::BucketByBucket => return Ok(None),
            }
        }
        Ok(Some(passed))
    }

    /// Advances one bucket of the author towards the outbox head, [`STEPS`] steps at most, and gives how far it has
    /// come. Cancelling loses nothing.
    pub(crate) async fn bucket(&self, turn: Option<&Turn>, author: UserNo, bucket: Bucket) -> Result<Reached> {
        let mut hot = None;
        for _ in 0..STEPS {
            let began = trace::began();
            match self.fan_out.advance(author, bucket).await? {
                Step::Moved { mut growth, hot: passed } => {
                    hot = hot.max(passed);
                    if !growth.inboxes.is_empty() {
                        stepped(turn, began, &mut growth);
                        self.metrics.steps.add(growth.inboxes.len() as u64);
                        self.doorbell.ring(&growth).await;
                    }
                }
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

    /// Tells every node that the author has posted items that readers pull.
    pub(crate) async fn hot(&self, head: PullHead) {
        self.doorbell.hot(head).await;
    }

    /// Brings outstanding edges of the reader, as they are now, to the reader's inboxes. Gives the events that are
    /// finished by this; none if no edge is outstanding. Cancelling loses nothing.
    pub(crate) async fn edges(&self, reader: UserNo) -> Result<Vec<Event>> {
        let (finished, grown) = self.fan_out.step_edges(reader).await?;
        self.tell(&grown).await;
        Ok(finished)
    }

    /// Brings items that are addressed to the reader to the reader's inboxes. Gives the event that is finished by this.
    /// Cancelling loses nothing.
    pub(crate) async fn direct(&self, turn: Option<&Turn>, reader: UserNo) -> Result<Event> {
        let began = trace::began();
        let (event, mut grown) = self.fan_out.take_direct(reader).await?;
        grown.iter_mut().for_each(|growth| stepped(turn, began, growth));
        self.tell(&grown).await;
        Ok(event)
    }

    async fn tell(&self, grown: &[Growth]) {
        for growth in grown {
            self.metrics.steps.add(growth.inboxes.len() as u64);
            self.doorbell.ring(growth).await;
        }
    }
}

/// Notes in the trace of this turn that a step, which began at `began`, has made inboxes grow.
fn stepped(turn: Option<&Turn>, began: Option<trace::Nanos>, growth: &mut Growth) {
    if let Some((turn, began)) = turn.zip(began) {
        let changes = growth.records.iter().map(|record| (record.key.item, record.op));
        let changes = changes.chain(growth.traced.iter().map(|one| (one.item, one.op)));
        growth.traced = turn.step(began, changes, growth.inboxes.len());
    }
}

/// Merges growths by the same records into one, so that a node is told of them once, however many buckets there are.
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
            traced: vec![],
        }
    }

    #[test]
    fn buckets_that_grew_by_the_same_records_ring_once_and_others_by_themselves() {
        let rung = together(vec![growth(1, &[1, 17]), growth(2, &[2]), growth(1, &[3])]);
        assert_eq!(rung, [growth(1, &[1, 17, 3]), growth(2, &[2])]);
    }
}
