//! What no push brings: items of authors who are pulled, and items addressed to the reader.
//!
//! ```text
//!   where the inbox stands ─▶ news beyond it, one snapshot with the edges ─▶ take, if it still stands there
//! ```
//!
//! Readers pull as they read, and only where the store has pull records that the inbox has not passed by: a
//! node knows the number of the newest one from what it hears and from asking now and then. What is
//! addressed to a reader is brought by the timeline worker.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{try_join, try_join_all};
use parking_lot::Mutex;

use super::{Feeds, TRIES, contended};
use crate::archive::Event;
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{Stand, Take, Taken};
use crate::named::NAMED_MAX;
use crate::{DirectSeq, Epoch, FeedId, InboxKey, PullSeq, UserNo, Watermarks, failpoint};

/// How far the watermark may lag behind what was looked at and found empty before that is written down.
const LAG_MAX: PullSeq = 4096;

/// Where there is no inbox, nothing is read but how far the news go.
const NOTHING: Watermarks = Watermarks { pull: PullSeq::MAX, direct: DirectSeq::MAX };

const DELIVERY: &str = "the delivery of what is addressed to a reader";

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

impl Feeds {
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
            let news = self.archive.news(key, after, self.step.news).await?;
            let whole = news.entries.len() < self.step.news;
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
            match self.inboxes.take(step).await? {
                // However much there is, each step is nearer to its end.
                Taken::Moved { .. } if !whole && next.pull < known => taken = next,
                Taken::Moved { .. } | Taken::Overtaken | Taken::Missing | Taken::Building => return Ok(()),
            }
        }
    }

    /// Brings what is addressed to the reader to each of the reader's inboxes. Answers what is thereby finished, and
    /// where the logs stand: whether one has grown now or by a read of one device just before, the others are to be
    /// told.
    ///
    /// Safe to repeat and to run twice at once. Cancelling loses nothing.
    pub async fn take_direct(&self, reader: UserNo) -> Result<(Event, Vec<Growth>)> {
        let (mut seq, mut grown) = (DirectSeq::MAX, vec![]);
        let (mut served, mut left) = (vec![], self.known.all());
        for _ in 0..TRIES {
            let keys: Vec<InboxKey> = left.iter().map(|feed| InboxKey { reader, feed: *feed }).collect();
            let stands = self.inboxes.stands(&keys).await?;
            let (mut takes, mut missing) = (vec![], vec![]);
            for (key, stand) in keys.into_iter().zip(stands) {
                // Somebody must say how far the news go.
                match stand.is_some() || key.feed == FeedId::MAIN {
                    true => takes.push(self.take_direct_of(key, stand)),
                    false => missing.push(key),
                }
            }
            for (feed, upto, growth) in try_join_all(takes).await? {
                served.push(feed);
                seq = seq.min(upto);
                grown.extend(growth);
            }
            let (all, come) = try_join(self.archive.feeds(), self.inboxes.present(&missing)).await?;
            served.extend(missing.iter().filter(|key| !come.contains(key)).map(|key| key.feed));
            for key in come {
                self.rebuild(key).await?;
            }
            left = self.known.learn(all, &served);
            if left.is_empty() {
                return Ok((Event::Direct { reader, seq }, grown));
            }
        }
        Err(contended(DELIVERY))
    }

    /// Brings one inbox what is addressed to its reader; `stand` is where the inbox was seen to stand. Answers its
    /// feed, the number up to which the inbox now has what is addressed, and how it has grown.
    async fn take_direct_of(
        &self,
        key: InboxKey,
        mut stand: Option<Stand>,
    ) -> Result<(FeedId, DirectSeq, Option<Growth>)> {
        let InboxKey { reader, feed } = key;
        let mut grown = None;
        let mut overtaken = 0;
        while overtaken < TRIES {
            let after = stand.map_or(NOTHING, |stand| stand.taken);
            let news = self.archive.news(key, after, self.step.news).await?;
            let finished = news.upto.direct;
            let whole = news.entries.len() < self.step.news;
            let (epoch, expected) = stand.map_or_else(Default::default, |stand| (stand.head.epoch, stand.taken));
            let step = Take { key, epoch, expected, next: news.upto, entries: news.entries, counter: news.counter };
            failpoint::hit("news-read");
            let taken = self.inboxes.take(step).await?;
            failpoint::hit("news-taken");
            match taken {
                Taken::Moved { head, .. } => {
                    if !news.quiet {
                        grown = Some(Growth::of_one(key, reader, head));
                    }
                    if whole {
                        return Ok((feed, finished, grown));
                    }
                }
                // A build that begins from now on brings all that was read here.
                Taken::Missing => return Ok((feed, finished, grown)),
                Taken::Overtaken => overtaken += 1,
                // It may have read before the item was there.
                Taken::Building => {
                    self.rebuild(key).await?;
                    overtaken += 1;
                }
            }
            stand = self.inboxes.stand(key).await?;
        }
        Err(contended(DELIVERY))
    }
}
