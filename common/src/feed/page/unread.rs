//! How much of a feed is unread, and what a reader sees of it.
//!
//! ```text
//!   log ──living adds──▶ judged by position ─┬─ seen, unread
//!                                            └─ by time ──when published──▶ seen, unread
//!   below the floor, if the log was cut since or built anew ──by time──▶ until a stretch of which all is seen
//! ```
//!
//! Unread items are counted when somebody asks, from the log of which a page is made, so a post costs nothing for
//! counts.
//!
//! A reader's own items are never unread.
//!
//! Invariants: a count never goes beyond [`UNREAD_MAX`], and takes in no item that the pages leave out because of the
//! feed's cap or time to live. Of a ranked feed nothing is unread. One count looks at the log and at [`READ_MAX`] adds
//! below it at most.

use futures_util::future::try_join;
use rustc_hash::FxHashSet;

use super::descent::{Descent, Leg, above_floor, is_within};
use super::{Pages, READ_MAX, Shown, living_adds};
use crate::error::Result;
use crate::feed::{Feeds, TRIES, contended};
use crate::inboxes::{KEEP, Log, Read};
use crate::seen::{Judged, UNREAD_MAX};
use crate::{DisplayKey, FeedId, InboxKey, ItemId, Millis, Op, Position, Seen};

/// How many adds below the floor are judged at a time. If none of them is unread, those below are not looked at.
const STRETCH: usize = 100;

/// More changes than a log ever keeps.
const WHOLE: usize = 4 * KEEP;

/// What a reader has seen of a feed, and how much is unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// The position up to which the reader has seen the feed, perhaps of an earlier epoch; `None` if nothing was ever
    /// seen.
    pub seen: Option<Position>,
    /// How many living adds are unread; [`UNREAD_MAX`] stands for that many or more.
    pub unread: usize,
    /// Where the log stood when it was counted.
    pub head: Position,
}

/// What became of [`Pages::see`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saw {
    /// The reader has now seen more than before.
    More(Sight),
    /// The reader had seen that much, or more.
    Nothing(Sight),
    /// The position is of another epoch, or the log does not reach back to it. The log ends here. Nothing has changed.
    Gone(Position),
    /// The position is after the end of the log, which is here. Nothing has changed.
    Ahead(Position),
}

impl Pages {
    /// What the reader has seen of the feed, and how much is unread. A missing inbox is built first.
    pub async fn sight(&self, key: InboxKey) -> Result<Sight> {
        let seen = self.changes.feeds.archive.seen(key).await?;
        let log = match self.log_since(key, seen).await? {
            Some(since) => since,
            None => self.changes.log(key).await?,
        };
        self.sight_of(key, &log, seen).await
    }

    /// Stores that the reader has seen the feed up to `at`. This is durable when the call answers, and every later
    /// count shows it. A dropped future leaves it stored or not stored.
    pub async fn see(&self, key: InboxKey, at: Position) -> Result<Saw> {
        let archive = &self.changes.feeds.archive;
        for _ in 0..TRIES {
            let (log, stored) = try_join(self.changes.log(key), archive.seen(key)).await?;
            let before = Seen::of_log(stored, log.head);
            if at.epoch == log.head.epoch && at.offset > log.head.offset {
                return Ok(Saw::Ahead(log.head));
            }
            let is_cut = at.offset < base(&log) && at.offset > before.position.offset;
            if at.epoch != log.head.epoch || is_cut {
                return Ok(Saw::Gone(log.head));
            }
            let next = before.advanced(at.offset, self.newest(&log, before.position.offset, at.offset).await?);
            let Some(later) = next.or_later(stored) else {
                return Ok(Saw::Nothing(self.sight_of(key, &log, stored).await?));
            };
            // If another device has stored a later position meanwhile, that position is read.
            if archive.see(key, next).await? {
                return Ok(Saw::More(self.sight_of(key, &log, Some(later)).await?));
            }
        }
        Err(contended("what is seen"))
    }

    /// When the newest of the adds beyond `after` and up to `upto` was published.
    async fn newest(&self, log: &Log, after: u64, upto: u64) -> Result<Option<Millis>> {
        let fresh = log.entries.iter().filter(|n| n.entry.op == Op::Add && n.seq > after && n.seq <= upto);
        let ids: Vec<ItemId> = fresh.map(|n| n.entry.key.item).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let published = self.changes.feeds.archive.published(&ids).await?;
        Ok(published.into_iter().flatten().map(|(_, at)| at).max())
    }

    /// The part of the log that the reader has not seen; `None` if more than that must be read to count unread items.
    async fn log_since(&self, key: InboxKey, seen: Option<Seen>) -> Result<Option<Log>> {
        let uncapped = self.changes.feeds.named().cap(key.feed).is_none();
        let Some(seen) = seen.filter(|seen| uncapped && !seen.may_lack(0)) else { return Ok(None) };
        let after = seen.position;
        Ok(match self.changes.read(key, after, WHOLE).await? {
            Read::Entries { entries, head, taken } if entries.len() < WHOLE => {
                Some(Log { head: Position { offset: head, ..after }, floor: None, taken, entries })
            }
            Read::Entries { .. } | Read::Gone { .. } | Read::Missing => None,
        })
    }

    async fn sight_of(&self, key: InboxKey, log: &Log, seen: Option<Seen>) -> Result<Sight> {
        let adds = living_adds(&log.entries);
        let end = self.changes.feeds.end(key, &above_floor(&adds, log.floor), log.floor).await?;
        let unread = self.unread(key, log, &adds, end, seen).await?;
        Ok(Sight { seen: seen.map(|seen| seen.position), unread, head: log.head })
    }

    /// How many of the living `adds` of `log`, and of those below it, are unread. `end`: the last key that the feed
    /// shows, if it has such an end.
    pub(super) async fn unread(
        &self,
        key: InboxKey,
        log: &Log,
        adds: &[Shown],
        end: Option<DisplayKey>,
        seen: Option<Seen>,
    ) -> Result<usize> {
        let feeds = &self.changes.feeds;
        let judge = Seen::of_log(seen, log.head);
        let mut unread = feeds.unread_of(key, adds, end, (judge, 0)).await?.len();
        // For a reader who has never seen anything, only the items of the log are counted.
        if unread < UNREAD_MAX && seen.is_some() && judge.may_lack(base(log)) && !feeds.named().is_ranked(key.feed) {
            let until = judge.until.max(feeds.too_old(key.feed));
            unread += self.unread_below(key, log, adds, end, until).await?;
        }
        Ok(unread.min(UNREAD_MAX))
    }

    /// How many adds below the floor of the log were published after `until`.
    async fn unread_below(
        &self,
        key: InboxKey,
        log: &Log,
        adds: &[Shown],
        end: Option<DisplayKey>,
        until: Millis,
    ) -> Result<usize> {
        let Some(floor) = log.floor else { return Ok(0) };
        let (feeds, now) = (&self.changes.feeds, self.changes.feeds.retention.now());
        // The Archive may show an item of the log at a lower rank already, to which it has moved.
        let counted: FxHashSet<ItemId> = adds.iter().map(|add| add.key.item).collect();
        let mut descent = Descent::new(log, vec![], floor.just_above(), end, READ_MAX);
        let (mut unread, mut looked) = (0, 0);
        while looked < READ_MAX {
            match descent.next(STRETCH, || self.windows.get(key, now?)) {
                Leg::Keys(keys) => {
                    looked += keys.len();
                    let others = keys.iter().filter(|key| !counted.contains(&key.item));
                    let items: Vec<ItemId> = others.map(|place| place.item).collect();
                    let published = feeds.archive.published(&items).await?;
                    let later = || published.iter().flatten().filter(|(_, at)| *at > until);
                    unread += later().filter(|(author, _)| *author != key.reader).count();
                    if later().next().is_none() {
                        break;
                    }
                }
                Leg::Read(below) => descent.told(&feeds.archive.feed_below(key, below, feeds.backfill).await?),
                Leg::End => break,
            }
        }
        self.keep(key, descent);
        Ok(unread)
    }
}

impl Feeds {
    /// The items of others in the log that its reader has not seen, in the order of the log: those that the pages show,
    /// without those below its floor. What stands in the log up to `acked` counts as seen too.
    pub async fn unread_in(&self, key: InboxKey, log: &Log, seen: Option<Seen>, acked: u64) -> Result<Vec<ItemId>> {
        let adds = living_adds(&log.entries);
        let end = self.end(key, &above_floor(&adds, log.floor), log.floor).await?;
        self.unread_of(key, &adds, end, (Seen::of_log(seen, log.head), acked)).await
    }

    /// Gives the items of a log that are unread, in the order of the log. `adds` are the living adds of the log. `end`
    /// is the last key that the feed shows, if a cap ends the feed. If more than [`UNREAD_MAX`] are unread, the oldest
    /// may be left out.
    async fn unread_of(
        &self,
        key: InboxKey,
        adds: &[Shown],
        end: Option<DisplayKey>,
        (judge, acked): (Seen, u64),
    ) -> Result<Vec<ItemId>> {
        // A recommender changes a ranking at any time, so the changes after a position do not tell which items the
        // reader has not seen.
        if self.named().is_ranked(key.feed) {
            return Ok(vec![]);
        }
        let too_old = self.too_old(key.feed);
        let within = adds.iter().filter(|add| add.author != key.reader && is_within(end, &add.key));
        // Each item, with the time after which it must have been published; `Millis::MIN` if it is unread in any case.
        let unseen = within.filter(|add| add.seq > acked).filter_map(|add| match judge.judge(add.seq) {
            Judged::Seen => None,
            Judged::Unread => Some((add.key.item, too_old)),
            Judged::IfAfter(until) => Some((add.key.item, until.max(too_old))),
        });
        let mut unseen: Vec<(ItemId, Millis)> = unseen.collect();
        if unseen.iter().filter(|(_, after)| *after == Millis::MIN).count() >= UNREAD_MAX {
            unseen.retain(|(_, after)| *after == Millis::MIN);
        }
        let asked = unseen.iter().filter(|(_, after)| *after > Millis::MIN);
        let asked: Vec<ItemId> = asked.map(|(item, _)| *item).collect();
        let published = if asked.is_empty() { vec![] } else { self.archive.published(&asked).await? };
        let mut published = published.into_iter();
        let mut is_later = |after| published.next().flatten().is_some_and(|(_, at)| at > after);
        unseen.retain(|(_, after)| *after == Millis::MIN || is_later(*after));
        Ok(unseen.into_iter().map(|(item, _)| item).collect())
    }

    /// The time, in Unix ms, such that the feed does not show items published up to then; `Millis::MIN` if it shows
    /// all.
    fn too_old(&self, feed: FeedId) -> Millis {
        let expired = self.retention.now().and_then(|now| self.named().expired_before(feed, now));
        expired.map_or(Millis::MIN, |expired| expired.saturating_sub(1))
    }
}

/// The offset of the last change that the log does not hold any more.
fn base(log: &Log) -> u64 {
    log.head.offset - log.entries.len() as u64
}
