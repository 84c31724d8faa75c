//! The push door: one atomic step of (author, bucket).
//!
//! ```text
//!   read progress ─▶ read records after it ─▶ read recipients with edge and counter ─▶ step
//!        ▲                                             ▲                                 │
//!        └──────────── Overtaken ──────────────────────┼──────────── Stale ──────────────┘
//! ```
//!
//! The order of the reads is the rule: no record after the edges, no counter after the edges. The step compares the
//! progress behind which the records begin, whenever that was read. Followers that were kept have older counters, and
//! the step says so.
//!
//! An author with few followers is advanced in all buckets by one round of the same reads. The first round need not
//! read the progress: events are finished up to a record that every bucket has passed, so each bucket stands there. The
//! step compares that progress, as always. If the inboxes have lost something since, or another worker was faster, the
//! step is refused and the next round reads the progress.
//!
//! Records of route pull are passed by: if all records ahead have this route, no recipient is read. A narrowed record
//! is a step of its own, whose recipients are the followers in its audience, and the author. If an author has more
//! followers than a round takes, only these recipients are read for the step of a bucket.

use std::collections::{HashMap, HashSet};

use feedgate_common::archive::{Ahead, Outbox, PullHead, Recipient};
use feedgate_common::change::Route;
use feedgate_common::doorbell::Growth;
use feedgate_common::error::Result;
use feedgate_common::feed::{TRIES, contended};
use feedgate_common::inboxes::{Advance, Advanced};
use feedgate_common::{Bucket, ItemId, OutboxSeq, Progress, Record, UserNo, failpoint};

use super::FanOut;
use super::plan::{narrowed, plan, pulled};

/// How many records one step looks at.
const RECORDS_MAX: usize = 256;

/// What one call of [`FanOut::advance_all`] has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Inboxes that have grown, bucket by bucket; none for records that are history.
    pub grown: Vec<Growth>,
    /// The author, if records of route pull stood ahead: readers who are online may take them in.
    pub hot: Option<PullHead>,
    /// What is left to do after this call.
    pub left: Left,
}

/// What is left to do after a [`Round`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing: every record up to this one has reached every bucket.
    Nothing(OutboxSeq),
    /// Another round: every bucket has passed the records up to this one, and there may be more records to bring.
    AnotherRound(OutboxSeq),
    /// Each bucket must be advanced by itself, with [`FanOut::advance`]: there are more followers than one round takes,
    /// another worker does the same, or a bucket has failed.
    BucketByBucket,
}

/// What one call of [`FanOut::advance`] has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The bucket has moved; there may be more to do.
    Moved {
        /// The inboxes that have grown and are to be told, if any.
        growth: Growth,
        /// The author, if the step passed by records of route pull; as [`Round::hot`].
        hot: Option<PullHead>,
    },
    /// Nothing was left: every record up to here has reached the bucket.
    AtHead(OutboxSeq),
}

impl FanOut {
    /// Moves the progress of an author in a bucket by one step, as far as one step may go.
    ///
    /// Safe to repeat and to run twice at once. Cancelling loses nothing.
    pub async fn advance(&self, author: UserNo, bucket: Bucket) -> Result<Step> {
        for _ in 0..TRIES {
            let expected = self.inboxes().progress(&[(author, bucket)]).await?[0];
            let outbox = self.archive().outbox(author, expected.done, RECORDS_MAX).await?;
            if outbox.records.is_empty() {
                return Ok(Step::AtHead(expected.done));
            }
            let recipients = self.recipients((author, bucket), expected, &outbox.records).await?;
            let step = plan((author, bucket), expected, &outbox.records, recipients, self.step);
            failpoint::hit("step-decided");
            self.note([&step].into_iter(), &outbox.imported).await?;
            let (records, passed) = (step.records.clone(), (step.next.done - expected.done) as usize);
            match self.inboxes().advance(step).await? {
                Advanced::Moved(inboxes) => {
                    failpoint::hit("step-answered");
                    // A step that brings pushed records may also pass by pulled records behind them.
                    let hot = hot(author, &outbox, &outbox.records[..passed]);
                    let inboxes = if loud(&records, outbox.live()) { inboxes } else { vec![] };
                    return Ok(Step::Moved { growth: Growth { author, records, inboxes, traced: vec![] }, hot });
                }
                Advanced::Overtaken(_) | Advanced::Stale => {}
            }
        }
        Err(contended("a push step"))
    }

    /// The first readers in the bucket whom the next record has not reached, by number; none if the next record is
    /// pulled.
    async fn recipients(
        &self,
        (author, bucket): (UserNo, Bucket),
        expected: Progress,
        ahead: &[Record],
    ) -> Result<Vec<Recipient>> {
        let (buckets, most) = (self.inboxes().buckets(), self.step.recipients);
        if pulled(expected, ahead) > 0 {
            return Ok(vec![]);
        }
        let Some(item) = narrowed(ahead) else {
            return self.archive().recipients(author, bucket, buckets, expected.last, most).await;
        };
        let mut readers = self.audience(author, item).await?;
        readers.retain(|reader| reader.bucket(buckets) == bucket && expected.last.is_none_or(|last| *reader > last));
        let mut recipients = self.archive().recipients_among(author, &readers).await?;
        recipients.truncate(most);
        Ok(recipients)
    }

    /// Moves every bucket on from where events are finished, as far as one step of each may go: one read, and one step
    /// of all buckets.
    ///
    /// The answer is [`Left::AnotherRound`] if the Archive does not know how far events are finished, or if a bucket
    /// stands elsewhere: then a round of [`Self::advance_all`] is needed. Safe to repeat and to run twice at once.
    /// Cancelling loses nothing.
    pub async fn advance_unfinished(&self, author: UserNo) -> Result<Round> {
        let read = self.archive().ahead(author, RECORDS_MAX, self.round_max).await?;
        let Some(Ahead { finished, outbox, recipients, kept }) = read else {
            return Ok(Round { grown: vec![], hot: None, left: Left::AnotherRound(0) });
        };
        if outbox.records.is_empty() {
            return Ok(Round { grown: vec![], hot: None, left: Left::Nothing(finished) });
        }
        let fits = recipients.len() < self.round_max;
        let progress = vec![Progress::at(finished); self.inboxes().buckets().into()];
        let mut round = self.step_all(author, progress, (finished, outbox), (recipients, kept)).await?;
        if fits && round.left == Left::BucketByBucket {
            round.left = Left::AnotherRound(0);
        }
        Ok(round)
    }

    /// Moves the progress of every bucket at once, as far as one step of each may go: an author with few
    /// followers costs one read of each kind and one step a bucket, whatever the number of buckets.
    ///
    /// If a bucket fails, the inboxes of the other buckets that have grown are still answered.
    ///
    /// Safe to repeat and to run twice at once. Cancelling loses nothing.
    pub async fn advance_all(&self, author: UserNo) -> Result<Round> {
        let buckets = self.inboxes().buckets();
        let all: Vec<(UserNo, Bucket)> = (0..buckets).map(|bucket| (author, Bucket(bucket))).collect();
        let Ok(progress) = self.inboxes().progress(&all).await else {
            return Ok(Round { grown: vec![], hot: None, left: Left::BucketByBucket });
        };
        let least = progress.iter().map(|progress| progress.done).min().unwrap_or_default();
        let outbox = self.archive().outbox(author, least, RECORDS_MAX).await?;
        if outbox.records.is_empty() {
            return Ok(Round { grown: vec![], hot: None, left: Left::Nothing(least) });
        }
        let ahead = |expected: Progress| outbox.records.get((expected.done - least) as usize..).unwrap_or_default();
        let all_pulled = progress.iter().all(|&of| ahead(of).is_empty() || pulled(of, ahead(of)) > 0);
        let recipients =
            if all_pulled { vec![] } else { self.archive().all_recipients(author, self.round_max).await? };
        self.step_all(author, progress, (least, outbox), (recipients, false)).await
    }

    /// Takes a step of each bucket that has not reached the end of `outbox`, unless there are more followers than one
    /// round takes. The buckets stand at `progress`, the records begin after `least`, and `recipients` are all
    /// followers; they may have been [kept](Advance::kept).
    async fn step_all(
        &self,
        author: UserNo,
        progress: Vec<Progress>,
        (least, outbox): (OutboxSeq, Outbox),
        (recipients, kept): (Vec<Recipient>, bool),
    ) -> Result<Round> {
        let buckets = self.inboxes().buckets();
        let ahead = |expected: Progress| outbox.records.get((expected.done - least) as usize..).unwrap_or_default();
        let hot = hot(author, &outbox, &outbox.records);
        if recipients.len() >= self.round_max {
            return Ok(Round { grown: vec![], hot, left: Left::BucketByBucket });
        }
        let mut shares: Vec<Vec<Recipient>> = vec![vec![]; buckets.into()];
        for recipient in recipients {
            shares[usize::from(recipient.reader.bucket(buckets).0)].push(recipient);
        }
        let audiences = self.audiences(author, progress.iter().map(|expected| ahead(*expected))).await?;
        failpoint::hit("step-decided");
        let (mut steps, mut reached) = (vec![], vec![]);
        for ((bucket, expected), share) in (0..buckets).map(Bucket).zip(progress).zip(shares) {
            let ahead = ahead(expected);
            if ahead.is_empty() {
                reached.push(Some(expected.done));
                continue;
            }
            let mut share = within(beyond(share, expected), narrowed(ahead).and_then(|item| audiences.get(&item)));
            share.truncate(self.step.recipients);
            steps.push(Advance { kept, ..plan((author, bucket), expected, ahead, share, self.step) });
        }
        self.note(steps.iter(), &outbox.imported).await?;
        let (mut told, live) = (vec![], outbox.live());
        for (grown, done) in self.take_all(steps).await {
            reached.push(done);
            told.extend(grown.filter(|growth| loud(&growth.records, live)));
        }
        Ok(Round { grown: told, hot, left: left(&reached, outbox.head) })
    }

    /// The audience of each item whose narrowed record is the next record of a bucket: one read for each item.
    async fn audiences<'a>(
        &self,
        author: UserNo,
        ahead: impl Iterator<Item = &'a [Record]>,
    ) -> Result<HashMap<ItemId, Vec<UserNo>>> {
        let items: HashSet<ItemId> = ahead.filter_map(narrowed).collect();
        let mut audiences = HashMap::with_capacity(items.len());
        for item in items {
            audiences.insert(item, self.audience(author, item).await?);
        }
        Ok(audiences)
    }

    /// The readers in the audience of an item, and its author, ascending by number.
    async fn audience(&self, author: UserNo, item: ItemId) -> Result<Vec<UserNo>> {
        let mut readers = self.archive().audience(item).await?;
        if let Err(at) = readers.binary_search(&author) {
            readers.insert(at, author);
        }
        Ok(readers)
    }

    /// Notes what these steps bring to readers who are away. This comes before the steps, because records of a step
    /// that was taken are not read again after a crash. What was `imported` is not noted.
    async fn note(&self, steps: impl Iterator<Item = &Advance>, imported: &[OutboxSeq]) -> Result<()> {
        match &self.noter {
            Some(noter) => noter.note_steps(steps, imported).await,
            None => Ok(()),
        }
    }

    /// Takes steps of different buckets. Gives for each step the inboxes that have grown, and the last record that the
    /// bucket has passed; neither if the inboxes refused the step, or if the step failed.
    async fn take_all(&self, steps: Vec<Advance>) -> Vec<(Option<Growth>, Option<OutboxSeq>)> {
        let kept: Vec<_> =
            steps.iter().map(|step| (step.author, step.bucket, step.records.clone(), step.next.done)).collect();
        let taken = self.inboxes().advance_all(steps).await;
        failpoint::hit("step-answered");
        let growth = |((author, bucket, records, done), taken)| match taken {
            Ok(Advanced::Moved(inboxes)) => {
                let grown = (!inboxes.is_empty()).then_some(Growth { author, records, inboxes, traced: vec![] });
                (grown, Some(done))
            }
            Ok(Advanced::Overtaken(_) | Advanced::Stale) => (None, None),
            Err(error) => {
                tracing::debug!(?author, ?bucket, %error, "a step of a round failed");
                (None, None)
            }
        };
        kept.into_iter().zip(taken).map(growth).collect()
    }
}

/// The author, if some of `records` are pulled and are news, so that readers who are online must be told.
fn hot(author: UserNo, outbox: &Outbox, records: &[Record]) -> Option<PullHead> {
    let live = outbox.live();
    let pulled_loudly = |record: &Record| record.route == Route::Pull && record.seq <= live;
    records.iter().any(pulled_loudly).then_some(PullHead { pull_seq: outbox.last_pull, author })
}

/// Whether anybody is told of these records. All records after `live` were imported. If the oldest of these records is
/// after `live`, all are, and nobody is told.
fn loud(records: &[Record], live: OutboxSeq) -> bool {
    records.first().is_some_and(|oldest| oldest.seq <= live)
}

/// The recipients whom the record in progress has not reached yet, by number.
fn beyond(mut share: Vec<Recipient>, expected: Progress) -> Vec<Recipient> {
    share.retain(|recipient| expected.last.is_none_or(|last| recipient.reader > last));
    share.sort_unstable_by_key(|recipient| recipient.reader);
    share
}

/// Keeps the recipients of a share who are in the audience of the record; all of them if it has no audience.
fn within(mut share: Vec<Recipient>, audience: Option<&Vec<UserNo>>) -> Vec<Recipient> {
    share.retain(|recipient| audience.is_none_or(|readers| readers.binary_search(&recipient.reader).is_ok()));
    share
}

/// What is left of a round. `reached` has the last record that each bucket has passed; `None` where no step was taken.
fn left(reached: &[Option<OutboxSeq>], head: OutboxSeq) -> Left {
    match reached.iter().copied().collect::<Option<Vec<_>>>() {
        None => Left::BucketByBucket,
        Some(reached) => match reached.into_iter().min() {
            Some(least) if least < head => Left::AnotherRound(least),
            _ => Left::Nothing(head),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_when_every_bucket_has_reached_the_head() {
        assert_eq!(left(&[Some(7), Some(7)], 7), Left::Nothing(7));
        assert_eq!(left(&[Some(7), Some(5)], 7), Left::AnotherRound(5));
        assert_eq!(left(&[Some(7), None], 7), Left::BucketByBucket);
    }

    #[test]
    fn s9_a_narrowed_record_goes_to_the_readers_in_its_audience() {
        let of = |reader| Recipient { reader: UserNo(reader), generation: 1, from: 0, counter: 1, listens: false };
        let audience = vec![UserNo(1), UserNo(3)];
        assert_eq!(within([1, 2, 3].map(of).to_vec(), Some(&audience)), [1, 3].map(of));
        assert_eq!(within([1, 2].map(of).to_vec(), Some(&vec![])), []);
        assert_eq!(within([1, 2].map(of).to_vec(), None), [1, 2].map(of));
    }

    #[test]
    fn a_record_in_progress_goes_to_the_readers_beyond_the_last_one_reached() {
        let half = Progress { done: 4, last: Some(UserNo(2)) };
        let of = |reader| Recipient { reader: UserNo(reader), generation: 1, from: 0, counter: 1, listens: false };
        assert_eq!(beyond([4, 3, 2, 1].map(of).to_vec(), half), [3, 4].map(of));
    }
}
