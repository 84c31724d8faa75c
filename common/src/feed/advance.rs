//! The push door: one atomic step of (author, bucket).
//!
//! ```text
//!   read progress ─▶ read records after it ─▶ read recipients with edge and counter ─▶ step
//!        ▲                                             ▲                                 │
//!        └──────────── Overtaken ──────────────────────┼──────────── Stale ──────────────┘
//! ```
//!
//! The order of the reads is the rule: progress before edges, counter never after edges.
//!
//! An author with few followers is advanced in all buckets by one round of the same reads. Records of route pull are
//! passed by: where nothing else stands ahead, no recipient is read.

use futures_util::future::join_all;

use super::{Feeds, StepSize, TRIES, contended};
use crate::archive::{Outbox, PullHead, Recipient};
use crate::change::Route;
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{Advance, Advanced};
use crate::{Bucket, FeedId, OutboxSeq, Progress, Record, UserNo, failpoint};

/// How many records one step looks at.
const RECORDS_MAX: usize = 256;

/// What one call of [`Feeds::advance_all`] has reached.
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
    /// Nothing: every record up to here has reached every bucket.
    Nothing(OutboxSeq),
    /// More of the same: every bucket has passed the records up to here.
    AnotherRound(OutboxSeq),
    /// More followers than one step takes, others work on the same, or a bucket failed: go bucket by
    /// bucket, with [`Feeds::advance`].
    BucketByBucket,
}

/// What one call of [`Feeds::advance`] has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These inboxes, if any, have grown, and are to be told; there may be more to do.
    Moved(Growth),
    /// Records of route pull were passed by; as [`Round::hot`]. There may be more to do.
    Passed(Option<PullHead>),
    /// Nothing was left: every record up to here has reached the bucket.
    AtHead(OutboxSeq),
}

impl Feeds {
    /// Moves the progress of (author, bucket) by one step, as far as one step may go.
    ///
    /// Safe to repeat and to run twice at once. Cancelling loses nothing.
    pub async fn advance(&self, author: UserNo, bucket: Bucket) -> Result<Step> {
        for _ in 0..TRIES {
            let expected = self.inboxes.progress(&[(author, bucket)]).await?[0];
            let outbox = self.archive.outbox(author, expected.done, RECORDS_MAX).await?;
            if outbox.records.is_empty() {
                return Ok(Step::AtHead(expected.done));
            }
            let passed = pulled(expected, &outbox.records);
            let recipients = if passed > 0 {
                vec![]
            } else {
                let (buckets, most) = (self.inboxes.buckets(), self.step.recipients);
                self.archive.recipients(author, bucket, buckets, expected.last, most).await?
            };
            let step = plan((author, bucket), expected, &outbox.records, recipients, self.step);
            failpoint::hit("step-decided");
            let records = step.records.clone();
            match self.inboxes.advance(step).await? {
                Advanced::Moved(inboxes) => {
                    failpoint::hit("step-answered");
                    if passed > 0 {
                        return Ok(Step::Passed(hot(author, &outbox, &outbox.records[..passed])));
                    }
                    let inboxes = if loud(&records, outbox.live) { inboxes } else { vec![] };
                    return Ok(Step::Moved(Growth { author, records, inboxes }));
                }
                Advanced::Overtaken(_) | Advanced::Stale => {}
            }
        }
        Err(contended("a push step"))
    }

    /// Moves the progress of every bucket at once, as far as one step of each may go: an author with few
    /// followers costs one read of each kind and one step a bucket, whatever the number of buckets.
    ///
    /// A bucket that fails takes nothing from the others: what they have grown by is answered.
    ///
    /// Safe to repeat and to run twice at once. Cancelling loses nothing.
    pub async fn advance_all(&self, author: UserNo) -> Result<Round> {
        let buckets = self.inboxes.buckets();
        let all: Vec<(UserNo, Bucket)> = (0..buckets).map(|bucket| (author, Bucket(bucket))).collect();
        let Ok(progress) = self.inboxes.progress(&all).await else {
            return Ok(Round { grown: vec![], hot: None, left: Left::BucketByBucket });
        };
        let least = progress.iter().map(|progress| progress.done).min().unwrap_or_default();
        let outbox = self.archive.outbox(author, least, RECORDS_MAX).await?;
        if outbox.records.is_empty() {
            return Ok(Round { grown: vec![], hot: None, left: Left::Nothing(least) });
        }
        let ahead = |expected: Progress| outbox.records.get((expected.done - least) as usize..).unwrap_or_default();
        let hot = hot(author, &outbox, &outbox.records);
        let all_pulled = progress.iter().all(|&of| ahead(of).is_empty() || pulled(of, ahead(of)) > 0);
        let recipients =
            if all_pulled { vec![] } else { self.archive.all_recipients(author, self.step.recipients).await? };
        if recipients.len() >= self.step.recipients {
            return Ok(Round { grown: vec![], hot, left: Left::BucketByBucket });
        }
        let mut shares: Vec<Vec<Recipient>> = vec![vec![]; buckets.into()];
        for recipient in recipients {
            shares[usize::from(recipient.reader.bucket(buckets).0)].push(recipient);
        }
        failpoint::hit("step-decided");
        let steps = all.into_iter().zip(progress).zip(shares).map(|((of, expected), share)| {
            let ahead = ahead(expected);
            let step = (!ahead.is_empty()).then(|| plan(of, expected, ahead, beyond(share, expected), self.step));
            async move {
                match step {
                    Some(step) => self.take(step).await.unwrap_or_else(|error| {
                        tracing::debug!(?of, %error, "a step of a round failed");
                        (None, None)
                    }),
                    None => (None, Some(expected.done)),
                }
            }
        });
        let (grown, reached): (Vec<_>, Vec<_>) = join_all(steps).await.into_iter().unzip();
        let told = grown.into_iter().flatten().filter(|growth| loud(&growth.records, outbox.live));
        Ok(Round { grown: told.collect(), hot, left: left(&reached, outbox.head) })
    }

    /// What has grown by the step, and how far it has come; neither if it was not taken.
    async fn take(&self, step: Advance) -> Result<(Option<Growth>, Option<OutboxSeq>)> {
        let (author, records, done) = (step.author, step.records.clone(), step.next.done);
        match self.inboxes.advance(step).await? {
            Advanced::Moved(inboxes) => {
                failpoint::hit("step-answered");
                let grown = (!inboxes.is_empty()).then_some(Growth { author, records, inboxes });
                Ok((grown, Some(done)))
            }
            Advanced::Overtaken(_) | Advanced::Stale => Ok((None, None)),
        }
    }
}

/// The author, if readers who are online are to be told of some of `records` and pull them.
fn hot(author: UserNo, outbox: &Outbox, records: &[Record]) -> Option<PullHead> {
    let pulled_loudly = |record: &Record| record.route == Route::Pull && record.seq <= outbox.live;
    records.iter().any(pulled_loudly).then_some(PullHead { pull_seq: outbox.last_pull, author })
}

/// Whether anybody is to be told of these records: not if they are history with nothing behind them that is not.
fn loud(records: &[Record], live: OutboxSeq) -> bool {
    records.first().is_some_and(|oldest| oldest.seq <= live)
}

/// Those whom the record in progress has not reached yet, by number.
fn beyond(mut share: Vec<Recipient>, expected: Progress) -> Vec<Recipient> {
    share.retain(|recipient| expected.last.is_none_or(|last| recipient.reader > last));
    share.sort_unstable_by_key(|recipient| recipient.reader);
    share
}

/// What is left of a round, from where each bucket stands now; `None` where a step was not taken.
fn left(reached: &[Option<OutboxSeq>], head: OutboxSeq) -> Left {
    match reached.iter().copied().collect::<Option<Vec<_>>>() {
        None => Left::BucketByBucket,
        Some(reached) => match reached.into_iter().min() {
            Some(least) if least < head => Left::AnotherRound(least),
            _ => Left::Nothing(head),
        },
    }
}

/// How many records ahead only have to be passed by: those of route pull before the first that is pushed.
fn pulled(expected: Progress, ahead: &[Record]) -> usize {
    match expected.last {
        Some(_) => 0,
        None => ahead.iter().take_while(|record| record.route == Route::Pull).count(),
    }
}

/// The largest step within `size`, or one record to one page of readers. `ahead` is not empty; `recipients` are the
/// first of those whom the record in progress has not reached, or all.
pub fn plan(
    (author, bucket): (UserNo, Bucket),
    expected: Progress,
    ahead: &[Record],
    recipients: Vec<Recipient>,
    size: StepSize,
) -> Advance {
    let passed = pulled(expected, ahead);
    if passed > 0 {
        // It reaches no inbox, of whatever feed.
        let (feed, next) = (FeedId::MAIN, Progress::at(expected.done + passed as u64));
        return Advance { author, bucket, feed, expected, next, records: vec![], recipients: vec![] };
    }
    let feed = ahead[0].feed;
    // What is pulled is passed by, whatever its feed.
    let same_feed = ahead.iter().take_while(|record| record.route == Route::Pull || record.feed == feed).count();
    let last_page = recipients.len() < size.recipients;
    let whole_records = if expected.last.is_none() && last_page {
        (size.appends / recipients.len().max(1)).clamp(1, same_feed)
    } else {
        1
    };
    let next = if last_page {
        Progress::at(expected.done + whole_records as u64)
    } else {
        Progress { done: expected.done, last: recipients.last().map(|r| r.reader) }
    };
    let records = ahead[..whole_records].iter().filter(|r| r.route == Route::Push).copied().collect();
    Advance { author, bucket, feed, expected, next, records, recipients }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ItemId;
    use crate::change::{DisplayKey, Op};

    const SIZE: StepSize = StepSize { recipients: 1000, appends: 4000, news: 1 };

    fn records(from: u64, n: u64) -> Vec<Record> {
        (from..from + n)
            .map(|seq| Record {
                seq,
                op: Op::Add,
                route: Route::Push,
                feed: FeedId::MAIN,
                key: DisplayKey { rank: 0, item: ItemId(seq) },
            })
            .collect()
    }

    fn readers(n: u32) -> Vec<Recipient> {
        (1..=n).map(|i| Recipient { reader: UserNo(i), generation: 1, from: 0, counter: 1 }).collect()
    }

    #[test]
    fn few_readers_get_many_records_in_one_step() {
        let step = plan((UserNo(9), Bucket(0)), Progress::at(4), &records(5, 8), readers(800), SIZE);
        assert_eq!((step.next, step.records.len()), (Progress::at(9), 5));
    }

    #[test]
    fn a_full_page_of_readers_gets_one_record_and_the_progress_stands_inside_it() {
        let step = plan((UserNo(9), Bucket(0)), Progress::at(4), &records(5, 8), readers(1000), SIZE);
        assert_eq!((step.next, step.records.len()), (Progress { done: 4, last: Some(UserNo(1000)) }, 1));
    }

    #[test]
    fn the_last_page_finishes_its_record() {
        let half = Progress { done: 4, last: Some(UserNo(0)) };
        let step = plan((UserNo(9), Bucket(0)), half, &records(5, 8), readers(3), SIZE);
        assert_eq!((step.next, step.records.len()), (Progress::at(5), 1));
    }

    #[test]
    fn a_round_is_over_when_every_bucket_has_reached_the_head() {
        assert_eq!(left(&[Some(7), Some(7)], 7), Left::Nothing(7));
        assert_eq!(left(&[Some(7), Some(5)], 7), Left::AnotherRound(5));
        assert_eq!(left(&[Some(7), None], 7), Left::BucketByBucket);
    }

    #[test]
    fn a_record_in_progress_goes_to_the_readers_beyond_the_last_one_reached() {
        let half = Progress { done: 4, last: Some(UserNo(2)) };
        let share = readers(4).into_iter().rev().collect();
        assert_eq!(beyond(share, half), readers(4)[2..]);
    }

    #[test]
    fn records_that_are_pulled_are_passed_by_at_once_and_reach_nobody() {
        let mut ahead = records(5, 8);
        ahead[..3].iter_mut().for_each(|record| record.route = Route::Pull);
        let step = plan((UserNo(9), Bucket(0)), Progress::at(4), &ahead, readers(1000), SIZE);
        assert_eq!((step.next, step.records.len(), step.recipients.len()), (Progress::at(7), 0, 0));
        let inside = Progress { done: 7, last: Some(UserNo(0)) };
        assert_eq!(pulled(inside, &ahead[3..]), 0, "a record in progress is pushed");
    }

    #[test]
    fn a_step_ends_where_the_next_record_goes_to_another_feed_and_passes_by_what_is_pulled() {
        let mut ahead = records(5, 8);
        ahead[1].route = Route::Pull;
        for record in [1, 3, 4] {
            ahead[record].feed = FeedId(2);
        }
        let step = plan((UserNo(9), Bucket(0)), Progress::at(4), &ahead, readers(8), SIZE);
        assert_eq!((step.feed, step.next, step.records.len()), (FeedId::MAIN, Progress::at(7), 2));
        let step = plan((UserNo(9), Bucket(0)), Progress::at(7), &ahead[3..], readers(8), SIZE);
        assert_eq!((step.feed, step.next, step.records.len()), (FeedId(2), Progress::at(9), 2));
    }

    #[test]
    fn a_bucket_without_followers_passes_everything_at_once() {
        let step = plan((UserNo(9), Bucket(0)), Progress::at(0), &records(1, 8), vec![], SIZE);
        assert_eq!(step.next, Progress::at(8));
    }
}
