//! News: the records that no push brings. Readers pull these records as they read.
//!
//! ```text
//!   where the inbox stands ─▶ news beyond it, one snapshot with the edges ─▶ take, if it still stands there
//! ```
//!
//! A read looks for news only where the store has pull records that the inbox has not passed by. A node knows the
//! number of the newest one: other nodes tell it, and the node asks now and then. Items that are addressed to the
//! reader are news too; the timeline worker brings them without waiting for a read.
//!
//! A post of a pulled author concerns many readers who are online. [`Changes::take_in`] does this step for many inboxes
//! at once, before their readers ask: the store then answers a few large calls instead of many small ones, and a reader
//! who is up to date needs none.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use parking_lot::Mutex;

use super::Changes;
use crate::error::Result;
use crate::inboxes::{Numbered, Stand, Take, Taken};
use crate::named::NAMED_MAX;
use crate::{Entry, Epoch, InboxKey, Position, PullSeq, Watermarks, failpoint};

/// How far a watermark may lag behind pull records that bring nothing. If it lags further, an empty step moves it.
const LAG_MAX: PullSeq = 4096;

/// How many inboxes are remembered to have nothing to pull.
const REMEMBERED: usize = 1 << 16;

/// The newest pull record that this node knows of, and how far it has looked for each inbox.
#[derive(Default)]
pub(super) struct Looked {
    head: AtomicU64,
    /// By reader, overwriting: the inbox, its epoch, and up to where there is nothing for it.
    ///
    /// This may be remembered, since an edge that changes later has its `from` beyond every record that was looked at.
    nothing: Mutex<Vec<Option<(InboxKey, Epoch, PullSeq)>>>,
}

impl Looked {
    fn nothing_up_to(&self, key: InboxKey, epoch: Epoch) -> PullSeq {
        let nothing = self.nothing.lock();
        match nothing.get(slot(key)) {
            Some(Some((of, at, upto))) if (*of, *at) == (key, epoch) => *upto,
            _ => 0,
        }
    }

    /// Lowers the known number of pull records if a snapshot, made after that number was heard of, does not have them.
    /// This happens after an Archive was put back to an earlier state; otherwise every read would look for records that
    /// do not exist.
    fn unhear(&self, heard: PullSeq, there: PullSeq) {
        if there < heard {
            _ = self.head.compare_exchange(heard, there, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn remember(&self, key: InboxKey, epoch: Epoch, upto: PullSeq) {
        let mut nothing = self.nothing.lock();
        if nothing.is_empty() {
            nothing.resize(REMEMBERED, None);
        }
        nothing[slot(key)] = Some((key, epoch, upto));
    }
}

/// The slot of an inbox. The feeds of one reader have different slots, so that they do not push each other out.
fn slot(key: InboxKey) -> usize {
    (key.reader.0 as usize + usize::from(key.feed.0) * (REMEMBERED / (NAMED_MAX + 1))) % REMEMBERED
}

impl Changes {
    /// Tells this node that pull records up to here exist. Reads that begin from now on take them in.
    pub fn heard_pull(&self, upto: PullSeq) {
        self.looked.head.fetch_max(upto, Ordering::Relaxed);
    }

    /// The number of the newest pull record that this node knows of.
    pub fn pull_head(&self) -> PullSeq {
        self.looked.head.load(Ordering::Relaxed)
    }

    /// Whether an inbox that stands here may have something to pull, up to `known`.
    pub(super) fn may_have_news(&self, key: InboxKey, epoch: Epoch, taken: Watermarks, known: PullSeq) -> bool {
        // The known number may have been lowered since, if no such record exists.
        let head = known.min(self.pull_head());
        taken.pull < head && self.looked.nothing_up_to(key, epoch) < head
    }

    /// Takes in what the inbox can pull, beyond `taken` and at least up to `known`, unless others overtake it. Read
    /// again.
    ///
    /// Cancelling loses nothing.
    pub(super) async fn pull(&self, key: InboxKey, epoch: Epoch, mut taken: Watermarks, known: PullSeq) -> Result<()> {
        // Each step takes in some records, so the loop ends however many there are.
        while let Some((step, whole)) = self.next_step(key, epoch, taken).await? {
            taken = step.next;
            let moved = matches!(self.feeds.inboxes.take(step).await?, Taken::Moved { .. });
            if whole || !moved || taken.pull >= known {
                break;
            }
        }
        Ok(())
    }

    /// Takes in what the readers of these inboxes can pull, for all of them at once. Gives in the place of each inbox
    /// how it grew. `None` says that the inbox did not grow, or is missing, or that the store did not answer for it;
    /// its reader is to look then.
    ///
    /// It brings as much as one step holds, not more. Not atomic: each inbox takes in by itself. Cancelling loses
    /// nothing.
    ///
    /// # Errors
    /// The error of the store, if it does not say where the inboxes stand; nothing was taken in then.
    pub async fn take_in(&self, keys: &[InboxKey]) -> Result<Vec<Option<TakenIn>>> {
        let known = self.pull_head();
        let stands = self.feeds.inboxes.stands(keys).await?;
        let taking = keys.iter().zip(stands).map(async |(key, stand)| {
            let Stand { head, taken } = stand?;
            if !self.may_have_news(*key, head.epoch, taken, known) {
                return None;
            }
            let (step, _) = self.next_step(*key, head.epoch, taken).await.ok()??;
            let entries = step.entries.clone();
            match self.feeds.inboxes.take(step).await.ok()? {
                Taken::Moved { head, appended } => Some(TakenIn::of(head, appended, entries)),
                Taken::Overtaken | Taken::Missing | Taken::Building => None,
            }
        });
        Ok(join_all(taking).await)
    }

    /// Reads what the inbox can pull beyond `taken`: the step that takes it in, as much as one step holds, and whether
    /// that is all. Gives `None` if there is nothing.
    async fn next_step(&self, key: InboxKey, epoch: Epoch, taken: Watermarks) -> Result<Option<(Take, bool)>> {
        let heard = self.pull_head();
        let after = Watermarks { pull: taken.pull.max(self.looked.nothing_up_to(key, epoch)), ..taken };
        let news = self.feeds.archive.news(key, after, self.take_max).await?;
        let whole = news.entries.len() < self.take_max;
        if whole {
            self.looked.unhear(heard, news.upto.pull);
        }
        if news.entries.is_empty() && news.upto.pull < taken.pull + LAG_MAX {
            self.looked.remember(key, epoch, news.upto.pull);
            return Ok(None);
        }
        let upto = news.upto;
        let step = Take { key, epoch, expected: taken, next: upto, entries: news.entries, counter: news.counter };
        failpoint::hit("news-read");
        Ok(Some((step, whole)))
    }
}

/// How an inbox grew in [`Changes::take_in`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenIn {
    /// Where its log stands now.
    pub head: Position,
    /// The last changes of the log up to `head`, without a hole; empty if they are not known.
    pub entries: Vec<Numbered>,
}

impl TakenIn {
    /// An inbox that took in `appended` of these entries and now ends at `head`. Which of them it took in is known only
    /// if it took in all.
    fn of(head: Position, appended: u32, entries: Vec<Entry>) -> Self {
        let all = if appended as usize == entries.len() { entries } else { vec![] };
        let first = head.offset + 1 - all.len() as u64;
        Self { head, entries: (first..).zip(all).map(|(seq, entry)| Numbered { seq, entry }).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserNo;

    fn taken_in(appended: u32) -> TakenIn {
        let entries = vec![Entry::forget(UserNo(2), 0, None), Entry::forget(UserNo(3), 0, None)];
        TakenIn::of(Position { epoch: Epoch(1), offset: 7 }, appended, entries)
    }

    #[test]
    fn what_an_inbox_took_in_is_told_only_if_it_took_in_all() {
        let seqs = |taken: TakenIn| taken.entries.iter().map(|numbered| numbered.seq).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(|appended| seqs(taken_in(appended))), [vec![], vec![], vec![6, 7]]);
        assert_eq!(taken_in(1).head.offset, 7, "that it grew is told");
        assert_eq!(taken_in(2).entries[0].entry, Entry::forget(UserNo(2), 0, None));
    }
}
