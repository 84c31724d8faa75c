//! Which records one push step brings, and to which readers: the pure rule of
//! [`FanOut::advance`](super::FanOut::advance).

use feedgate_common::archive::Recipient;
use feedgate_common::change::Route;
use feedgate_common::inboxes::{APPENDS_MAX, Advance, STEP_MAX};
use feedgate_common::{Bucket, FeedId, ItemId, Op, Progress, Record, UserNo};

/// The most that one push step does.
#[derive(Debug, Clone, Copy)]
pub struct StepSize {
    /// The most readers. Further readers are for the next step.
    pub recipients: usize,
    /// The most appends: records times readers. A step takes at least one record, even if that is more.
    pub appends: usize,
}

impl Default for StepSize {
    fn default() -> Self {
        Self { recipients: STEP_MAX, appends: APPENDS_MAX }
    }
}

/// How many records at the start of `ahead` reach no inbox and are skipped: those of route pull before the first that
/// is pushed.
pub(super) fn pulled(expected: Progress, ahead: &[Record]) -> usize {
    match expected.last {
        Some(_) => 0,
        None => ahead.iter().take_while(|record| record.route == Route::Pull).count(),
    }
}

/// How many records at the start of `ahead` one step may bring: they go to one feed and to the same readers. The first
/// record is not pulled. Records of route pull reach no inbox, so they may stand between any others. A narrowed record
/// has readers of its own, so only the two records by which its item moves to another rank go together.
fn alike(ahead: &[Record]) -> usize {
    let first = ahead[0];
    let ends_move = |record: &Record| {
        (first.op, record.op, record.seq) == (Op::Delete, Op::Add, first.seq + 1) && record.key.item == first.key.item
    };
    let goes_along = |record: &&Record| match record.route {
        Route::Pull => true,
        Route::Push => first.route == Route::Push && record.feed == first.feed,
        Route::Narrow => record.seq == first.seq || ends_move(record),
    };
    ahead.iter().take_while(goes_along).count()
}

/// The item of the next record, if it is narrowed: then only readers in the audience of that item are recipients.
pub(super) fn narrowed(ahead: &[Record]) -> Option<ItemId> {
    ahead.first().filter(|record| record.route == Route::Narrow).map(|record| record.key.item)
}

/// The largest step within `size`: several whole records, or one record for one page of readers. `ahead` is not empty.
/// `recipients` are the first readers whom the record in progress has not reached, by number. If they are fewer than
/// `size.recipients`, they are all of these readers.
pub fn plan(
    (author, bucket): (UserNo, Bucket),
    expected: Progress,
    ahead: &[Record],
    recipients: Vec<Recipient>,
    size: StepSize,
) -> Advance {
    let passed = pulled(expected, ahead);
    if passed > 0 {
        // These records reach no inbox, so any feed will do.
        let (feed, next) = (FeedId::MAIN, Progress::at(expected.done + passed as u64));
        return Advance { author, bucket, feed, expected, next, records: vec![], recipients: vec![], kept: false };
    }
    let feed = ahead[0].feed;
    let alike = alike(ahead);
    let last_page = recipients.len() < size.recipients;
    let whole_records =
        if expected.last.is_none() && last_page { (size.appends / recipients.len().max(1)).clamp(1, alike) } else { 1 };
    let next = if last_page {
        Progress::at(expected.done + whole_records as u64)
    } else {
        Progress { done: expected.done, last: recipients.last().map(|r| r.reader) }
    };
    let records = ahead[..whole_records].iter().filter(|r| r.route != Route::Pull).copied().collect();
    Advance { author, bucket, feed, expected, next, records, recipients, kept: false }
}

#[cfg(test)]
mod tests {
    use feedgate_common::DisplayKey;

    use super::*;

    const SIZE: StepSize = StepSize { recipients: 1000, appends: 4000 };

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
        (1..=n).map(|i| Recipient { reader: UserNo(i), generation: 1, from: 0, counter: 1, listens: false }).collect()
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
    fn s9_a_narrowed_record_is_a_step_of_its_own() {
        let mut ahead = records(5, 8);
        (ahead[2].route, ahead[3].route, ahead[4].route) = (Route::Narrow, Route::Narrow, Route::Pull);
        let step = |done, ahead: &[Record]| plan((UserNo(9), Bucket(0)), Progress::at(done), ahead, readers(8), SIZE);
        let seqs = |step: &Advance| step.records.iter().map(|record| record.seq).collect::<Vec<_>>();
        let first = step(4, &ahead);
        assert_eq!((first.next, seqs(&first)), (Progress::at(6), vec![5, 6]));
        let second = step(6, &ahead[2..]);
        assert_eq!((second.next, seqs(&second)), (Progress::at(7), vec![7]));
        assert_eq!([&ahead[..], &ahead[2..], &ahead[4..]].map(narrowed), [None, Some(ItemId(7)), None]);
    }

    #[test]
    fn s11_a_narrowed_item_moves_to_another_rank_in_one_step() {
        let mut ahead = records(5, 4);
        ahead.iter_mut().for_each(|record| record.route = Route::Narrow);
        (ahead[0].op, ahead[0].key.item) = (Op::Delete, ItemId(6));
        let next = |ahead: &[Record]| plan((UserNo(9), Bucket(0)), Progress::at(4), ahead, readers(8), SIZE).next;
        assert_eq!(next(&ahead), Progress::at(6), "its delete and its add");
        ahead[0].key.item = ItemId(1);
        assert_eq!(next(&ahead), Progress::at(5), "the delete of another item");
    }

    #[test]
    fn a_bucket_without_followers_passes_everything_at_once() {
        let step = plan((UserNo(9), Bucket(0)), Progress::at(0), &records(1, 8), vec![], SIZE);
        assert_eq!(step.next, Progress::at(8));
    }
}
