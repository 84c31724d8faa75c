//! News: what no push brings. Readers pull it as they read.
//!
//! ```text
//!   where the inbox stands ─▶ news beyond it, one snapshot with the edges ─▶ take, if it still stands there
//! ```
//!
//! A read looks for news only where the store has pull records that the inbox has not passed by: a node knows the number
//! of the newest one from what it hears and from asking now and then. News are also the items that are addressed to the
//! reader; these the timeline worker brings without waiting for a read.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Changes;
use crate::error::Result;
use crate::inboxes::{Take, Taken};
use crate::named::NAMED_MAX;
use crate::{Epoch, InboxKey, PullSeq, Watermarks, failpoint};

/// How far the watermark may lag behind what was looked at and found empty before that is written down.
const LAG_MAX: PullSeq = 4096;

/// How many inboxes are remembered to have nothing to pull.
const REMEMBERED: usize = 1 << 16;

/// How far this node knows the pull records to go, and how far it has looked for whom.
#[derive(Default)]
pub(super) struct Looked {
    head: AtomicU64,
    /// By reader, overwriting: the inbox, its epoch, and up to where there is nothing for it.
    ///
    /// Right to remember: an edge that changes later has its `from` beyond every record looked at.
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

    /// What was heard of before a snapshot, and is not in it, is not there: an Archive that was put back knows less
    /// than it told, and every read would look for the rest in vain.
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

/// The feeds of a reader lie apart, so that they do not push each other out.
fn slot(key: InboxKey) -> usize {
    (key.reader.0 as usize + usize::from(key.feed.0) * (REMEMBERED / (NAMED_MAX + 1))) % REMEMBERED
}

impl Changes {
    /// Tells this node that pull records up to here exist. Reads that begin from now on take them in.
    pub fn heard_pull(&self, upto: PullSeq) {
        self.looked.head.fetch_max(upto, Ordering::Relaxed);
    }

    /// Up to where this node knows of pull records.
    pub fn pull_head(&self) -> PullSeq {
        self.looked.head.load(Ordering::Relaxed)
    }

    /// Whether an inbox that stands here may have something to pull, up to `known`.
    pub(super) fn may_have_news(&self, key: InboxKey, epoch: Epoch, taken: Watermarks, known: PullSeq) -> bool {
        // A number that turned out to be nobody's was taken back.
        let head = known.min(self.pull_head());
        taken.pull < head && self.looked.nothing_up_to(key, epoch) < head
    }

    /// Takes in what the inbox can pull, beyond `taken` and at least up to `known`, unless others overtake it. Read
    /// again.
    ///
    /// Cancelling loses nothing.
    pub(super) async fn pull(&self, key: InboxKey, epoch: Epoch, mut taken: Watermarks, known: PullSeq) -> Result<()> {
        loop {
            let heard = self.pull_head();
            let after = Watermarks { pull: taken.pull.max(self.looked.nothing_up_to(key, epoch)), ..taken };
            let news = self.feeds.archive.news(key, after, self.take_max).await?;
            let whole = news.entries.len() < self.take_max;
            if whole {
                self.looked.unhear(heard, news.upto.pull);
            }
            if news.entries.is_empty() && news.upto.pull < taken.pull + LAG_MAX {
                self.looked.remember(key, epoch, news.upto.pull);
                return Ok(());
            }
            let (expected, next) = (taken, news.upto);
            let step = Take { key, epoch, expected, next, entries: news.entries, counter: news.counter };
            failpoint::hit("news-read");
            match self.feeds.inboxes.take(step).await? {
                // However much there is, each step is nearer to its end.
                Taken::Moved { .. } if !whole && next.pull < known => taken = next,
                Taken::Moved { .. } | Taken::Overtaken | Taken::Missing | Taken::Building => return Ok(()),
            }
        }
    }
}
