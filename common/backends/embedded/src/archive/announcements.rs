//! The log of announcements for other programs: each is kept in the transaction of its write, and old ones are removed.
//!
//! Invariants: numbers are dense in commit order, and no number is given twice. A write removes at most twice as many
//! old rows as it adds, plus [`TRIM`], so that no write waits long.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::Millis;
use feedgate_common::announce::{Act, Announcement, Numbered};
use feedgate_common::archive;
use feedgate_common::error::{Result, StoreError};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::EmbeddedArchive;
use super::tables::{AnnouncementRow, Announcements, LastAnnounced};
use crate::request::Durability;
use crate::view::{Read, Tx, View};

/// How many old rows a write may remove, in addition to two for each row that the write adds.
const TRIM: usize = 16;

/// How long the Archive of one machine keeps announcements for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// No announcement is kept for longer, once a later write has come.
    pub age: Duration,
    /// No more announcements are kept.
    pub most: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { age: Duration::from_secs(24 * 3600), most: 1 << 20 }
    }
}

impl Kept {
    /// Whether the announcement with this number, made at `at`, is to go, if `last` is the newest and it is `now`.
    fn is_over(self, (number, at): (u64, Millis), last: u64, now: Millis) -> bool {
        let age = Millis::try_from(self.age.as_millis()).unwrap_or(Millis::MAX);
        number.saturating_add(self.most) <= last || at < now.saturating_sub(age)
    }
}

/// The state of the log that the writer and the programs that follow the log share.
pub(super) struct Log {
    kept: Kept,
    /// A number below which there is no row, so that a trim meets no removed rows; and a time no later than the row
    /// with this number was made, so that a write looks for old rows only if there may be some. Only the writer thread
    /// uses it. If a transaction fails, the store is opened again, and then this is [reset](Self::reset).
    oldest: Arc<Mutex<(u64, Millis)>>,
    /// The last number in a transaction that the writer has begun.
    stored: AtomicU64,
    /// The last number that every reader sees.
    seen: watch::Sender<u64>,
}

impl Log {
    pub(super) fn open(view: &View, kept: Kept) -> Result<Self> {
        let last = view.get::<LastAnnounced>(&())?.unwrap_or(0);
        Ok(Self { kept, oldest: Arc::default(), stored: AtomicU64::new(last), seen: watch::Sender::new(last) })
    }

    /// To be called when the store was opened again: rows that a transaction has removed may be there.
    pub(super) fn reset(&self) {
        *self.oldest.lock() = Default::default();
    }

    /// Gives this log with other bounds for what is kept. To be called before anything is written.
    pub(super) fn keeping(&self, kept: Kept) -> Self {
        let last = *self.seen.borrow();
        let oldest = self.oldest.clone();
        Self { kept, oldest, stored: AtomicU64::new(last), seen: watch::Sender::new(last) }
    }

    /// Keeps the announcements of the writes of a transaction, and removes some announcements that are too old.
    pub(super) fn keep(&self, tx: &mut Tx<'_>, told: Vec<Announcement>, now: Millis) -> Result<()> {
        if told.is_empty() {
            return Ok(());
        }
        let trim = 2 * told.len() + TRIM;
        let mut last = tx.get::<LastAnnounced>(&())?.unwrap_or(0);
        for told in told {
            last += 1;
            tx.put::<Announcements>(&last, &row(told));
        }
        tx.put::<LastAnnounced>(&(), &last);
        self.stored.store(last, Ordering::Relaxed);
        self.trim(tx, trim, last, now)
    }

    fn trim(&self, tx: &mut Tx<'_>, most: usize, last: u64, now: Millis) -> Result<()> {
        let mut oldest = self.oldest.lock();
        if !self.kept.is_over(*oldest, last, now) {
            return Ok(());
        }
        let mut over = vec![];
        for row in tx.scan::<Announcements>(oldest.0..last).take(most) {
            let (number, row) = row?;
            if !self.kept.is_over((number, row.at), last, now) {
                *oldest = (number, row.at);
                break;
            }
            oldest.0 = number + 1;
            over.push(number);
        }
        forget(tx, &over);
        Ok(())
    }

    /// Tells the followers of the log that it has grown. To be called on the writer thread once the kept announcements
    /// are visible.
    pub(super) fn tell(&self) {
        let stored = self.stored.load(Ordering::Relaxed);
        self.seen.send_if_modified(|seen| std::mem::replace(seen, stored) != stored);
    }

    /// A stream of the last number: the present number at once, then a new number each time that the log has grown.
    fn growth(&self) -> BoxStream<'static, u64> {
        let mut seen = self.seen.subscribe();
        seen.mark_changed();
        let next = async |mut seen: watch::Receiver<u64>| {
            seen.changed().await.ok()?;
            let last = *seen.borrow_and_update();
            Some((last, seen))
        };
        stream::unfold(seen, next).boxed()
    }
}

#[async_trait]
impl archive::Announcements for EmbeddedArchive {
    async fn announced(&self, after: u64, limit: usize) -> Result<Vec<Numbered>> {
        self.db.read(move |view| beyond(view, after, limit)).await
    }

    async fn forget_announced(&self, numbers: &[u64]) -> Result<()> {
        let numbers = numbers.to_vec();
        let removal = move |tx: &mut Tx<'_>| {
            forget(tx, &numbers);
            Ok(())
        };
        self.db.write(Durability::Synced, removal).await
    }

    async fn may_publish(&self, _relay: &str, _lease: Duration) -> Result<bool> {
        Ok(true)
    }

    fn growth(&self) -> Option<BoxStream<'static, u64>> {
        Some(self.log.growth())
    }
}

/// The announcements beyond `after`, by number, at most `limit`.
fn beyond(view: &View, after: u64, limit: usize) -> Result<Vec<Numbered>> {
    let rows = view.scan::<Announcements>((Excluded(after), Unbounded)).take(limit);
    rows.map(|found| found.and_then(|(number, row)| Ok((number, told(row)?)))).collect()
}

/// Removes the rows with these numbers.
fn forget(tx: &mut Tx<'_>, numbers: &[u64]) {
    numbers.iter().for_each(|number| tx.remove::<Announcements>(number));
}

fn row(told: Announcement) -> AnnouncementRow {
    let Announcement { act, user, other, item, version, at, detail } = told;
    AnnouncementRow { at, act: act as u8, user, other, item, version, detail }
}

fn told(row: AnnouncementRow) -> Result<Announcement> {
    let AnnouncementRow { at, act, user, other, item, version, detail } = row;
    let known = Act::from_u8(act);
    let act = known.ok_or_else(|| StoreError::corrupt(format_args!("{act} where an act is announced")))?;
    Ok(Announcement { act, user, other, item, version, at, detail })
}

#[cfg(test)]
mod tests {
    use feedgate_common::archive::Announcements as _;

    use super::*;
    use crate::archive::fixture;

    #[test]
    fn an_announcement_goes_when_it_is_too_old_or_too_many_are_newer() {
        let kept = Kept { age: Duration::from_secs(1), most: 3 };
        let is_over = |number, at| kept.is_over((number, at), 10, 5000);
        assert_eq!([7, 8, 10].map(|number| is_over(number, 5000)), [true, false, false]);
        assert_eq!([3999, 4000, 4001].map(|at| is_over(9, at)), [true, false, false]);
    }

    #[tokio::test]
    async fn i18_a_write_removes_what_is_too_old_and_then_what_is_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept { age: Duration::from_secs(1), most: 3 };
        let archive = fixture::open(dir.path()).await.with_kept(kept);
        for (now, left) in [
            (1000, vec![1]),
            (2000, vec![1, 2]),
            (2001, vec![2, 3]),
            (2001, vec![2, 3, 4]),
            (2002, vec![3, 4, 5]),
            (4000, vec![6]),
        ] {
            fixture::published_at(&archive, now).await;
            let told = archive.announced(0, 100).await.unwrap();
            assert_eq!(told.iter().map(|(number, _)| *number).collect::<Vec<_>>(), left, "at {now}");
        }
    }

    #[tokio::test]
    async fn i18_what_a_transaction_that_failed_has_removed_is_removed_by_a_later_one() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept { age: Duration::from_secs(1), most: 9 };
        let archive = fixture::open(dir.path()).await.with_kept(kept);
        for now in [1000, 1001] {
            fixture::published_at(&archive, now).await;
        }
        let (log, told) = (archive.log.clone(), archive.announced(0, 1).await.unwrap().remove(0).1);
        let fails = move |tx: &mut Tx<'_>| {
            log.keep(tx, vec![told], 5000)?;
            Err::<(), _>(StoreError::unavailable("the disk is full"))
        };
        archive.db.write(Durability::Synced, fails).await.unwrap_err();
        archive.db.say_reopened();
        fixture::published_at(&archive, 5001).await;
        let told = archive.announced(0, 100).await.unwrap();
        assert_eq!(told.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3]);
    }
}
