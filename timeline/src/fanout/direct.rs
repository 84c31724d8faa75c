//! The direct door: brings items that are addressed to a reader to the reader's inboxes.
//!
//! ```text
//!   where all inboxes stand ─┬─ stands ──▶ news beyond it, one snapshot with the edges ─▶ take, if it still stands there
//!       ▲                    └─ missing ─▶ is one being built now? ─▶ builds it too
//!       └── a feed was unknown here, or an inbox has come ──┘
//! ```
//!
//! A take brings what is pulled along with it: one step moves both watermarks.

use feedgate_common::archive::Event;
use feedgate_common::doorbell::Growth;
use feedgate_common::error::Result;
use feedgate_common::feed::{TRIES, contended};
use feedgate_common::inboxes::{Stand, Take, Taken};
use feedgate_common::{DirectSeq, FeedId, InboxKey, PullSeq, UserNo, Watermarks, failpoint};
use futures_util::future::{try_join, try_join_all};

use super::FanOut;

/// Where there is no inbox, nothing is read but how far the news go.
const NOTHING: Watermarks = Watermarks { pull: PullSeq::MAX, direct: DirectSeq::MAX };

const DELIVERY: &str = "the delivery of what is addressed to a reader";

impl FanOut {
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
            let stands = self.inboxes().stands(&keys).await?;
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
            let (all, come) = try_join(self.archive().feeds(), self.inboxes().present(&missing)).await?;
            served.extend(missing.iter().filter(|key| !come.contains(key)).map(|key| key.feed));
            for key in come {
                self.feeds.rebuild(key).await?;
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
            let news = self.archive().news(key, after, self.take_max).await?;
            let finished = news.upto.direct;
            let whole = news.entries.len() < self.take_max;
            let (epoch, expected) = stand.map_or_else(Default::default, |stand| (stand.head.epoch, stand.taken));
            let step = Take { key, epoch, expected, next: news.upto, entries: news.entries, counter: news.counter };
            failpoint::hit("news-read");
            let taken = self.inboxes().take(step).await?;
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
                    self.feeds.rebuild(key).await?;
                    overtaken += 1;
                }
            }
            stand = self.inboxes().stand(key).await?;
        }
        Err(contended(DELIVERY))
    }
}
