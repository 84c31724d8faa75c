//! The push door: one atomic step of (author, bucket).
//!
//! ```text
//!   read progress ─▶ read records after it ─▶ read recipients with edge and counter ─▶ step
//!        ▲                                             ▲                                 │
//!        └──────────── Overtaken ──────────────────────┼──────────── Stale ──────────────┘
//! ```
//!
//! The order of the reads is the rule: progress before edges, counter never after edges.

use super::{Feeds, StepSize, TRIES, contended};
use crate::archive::Recipient;
use crate::change::Route;
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{Advance, Advanced};
use crate::{Bucket, OutboxSeq, Progress, Record, UserNo, failpoint};

/// How many records one step looks at.
const RECORDS_MAX: usize = 256;

/// What one call of [`Feeds::advance`] has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These inboxes, if any, have grown; there may be more to do.
    Moved(Growth),
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
            let buckets = self.inboxes.buckets();
            let recipients =
                self.archive.recipients(author, bucket, buckets, expected.last, self.step.recipients).await?;
            let step = plan((author, bucket), expected, &outbox.records, recipients, self.step);
            failpoint::hit("step-decided");
            let records = step.records.clone();
            match self.inboxes.advance(step).await? {
                Advanced::Moved(inboxes) => {
                    failpoint::hit("step-answered");
                    return Ok(Step::Moved(Growth { author, records, inboxes }));
                }
                Advanced::Overtaken(_) | Advanced::Stale => {}
            }
        }
        Err(contended("a push step"))
    }
}

/// The largest step within `size`, or one record to one page of readers.
fn plan(
    (author, bucket): (UserNo, Bucket),
    expected: Progress,
    ahead: &[Record],
    recipients: Vec<Recipient>,
    size: StepSize,
) -> Advance {
    let last_page = recipients.len() < size.recipients;
    let whole_records = if expected.last.is_none() && last_page {
        (size.appends / recipients.len().max(1)).clamp(1, ahead.len())
    } else {
        1
    };
    let next = if last_page {
        Progress::at(expected.done + whole_records as u64)
    } else {
        Progress { done: expected.done, last: recipients.last().map(|r| r.reader) }
    };
    let records = ahead[..whole_records].iter().filter(|r| r.route == Route::Push).copied().collect();
    Advance { author, bucket, expected, next, records, recipients }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ItemId;
    use crate::change::{DisplayKey, Op};

    const SIZE: StepSize = StepSize { recipients: 1000, appends: 4000 };

    fn records(from: u64, n: u64) -> Vec<Record> {
        (from..from + n)
            .map(|seq| Record { seq, op: Op::Add, route: Route::Push, key: DisplayKey { rank: 0, item: ItemId(seq) } })
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
    fn a_bucket_without_followers_passes_everything_at_once() {
        let step = plan((UserNo(9), Bucket(0)), Progress::at(0), &records(1, 8), vec![], SIZE);
        assert_eq!(step.next, Progress::at(8));
    }
}
