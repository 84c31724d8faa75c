//! The direct door: brings items that are addressed to a reader to the reader's inboxes.
//!
//! ```text
//!   where all inboxes stand ─┬─ stands ──▶ news beyond it, one snapshot with the edges ─▶ take, if it still stands there
//!       ▲                    └─ missing ─▶ is one being built now? ─▶ builds it too
//!       └── a feed was unknown here, or an inbox has come ──┘
//! ```
//!
//! A take also brings items that the reader pulls: one step moves both watermarks.

use std::collections::HashSet;

use feedgate_common::archive::{Event, Note};
use feedgate_common::doorbell::Growth;
use feedgate_common::error::Result;
use feedgate_common::feed::{TRIES, contended};
use feedgate_common::inboxes::{Stand, Take, Taken};
use feedgate_common::notify::is_notification;
use feedgate_common::{DirectSeq, FeedId, InboxKey, ItemId, PullSeq, UserNo, Watermarks, failpoint, trace};
use futures_util::future::{try_join, try_join_all};

use super::FanOut;
use crate::push::{Noter, added, may_replace, note_of};

/// Watermarks that are beyond all news. A read beyond them gives no items, and says how far the news go.
pub(crate) const NOTHING: Watermarks = Watermarks { pull: PullSeq::MAX, direct: DirectSeq::MAX };

const DELIVERY: &str = "the delivery of what is addressed to a reader";

/// The changes that were brought to one inbox.
struct Brought {
    feed: FeedId,
    /// The number up to which the inbox now has the records addressed to its reader.
    upto: DirectSeq,
    growth: Option<Growth>,
    noted: Option<Listens>,
}

/// What the Archive says of a reader who listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listens {
    /// The number of [`News::noted`](feedgate_common::archive::News::noted).
    noted: DirectSeq,
    /// Whether items after it are told to nobody, because all of them were imported.
    quiet: bool,
}

/// What two reads say together. A live item may have come after one of them.
fn both(one: Option<Listens>, other: Option<Listens>) -> Option<Listens> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(Listens { noted: one.noted.max(other.noted), quiet: one.quiet && other.quiet })
        }
        (one, other) => one.or(other),
    }
}

impl FanOut {
    /// Brings items that are addressed to the reader to each of the reader's inboxes. Gives the event that is finished
    /// by this, and where the logs end now. A log may have grown by this call, or by a read of one device just before
    /// it; in both cases the other devices must be told.
    ///
    /// Safe to repeat and to run twice at once. Cancelling loses nothing.
    pub async fn take_direct(&self, reader: UserNo) -> Result<(Event, Vec<Growth>)> {
        let (mut seq, mut grown, mut listens) = (DirectSeq::MAX, vec![], None);
        let (mut served, mut left) = (vec![], self.known.all());
        for _ in 0..TRIES {
            let keys: Vec<InboxKey> = left.iter().map(|feed| InboxKey { reader, feed: *feed }).collect();
            let stands = self.inboxes().stands(&keys).await?;
            let (mut takes, mut missing) = (vec![], vec![]);
            for (key, stand) in keys.into_iter().zip(stands) {
                // The main feed is always read, because the event needs to know how far the news go.
                match stand.is_some() || key.feed == FeedId::MAIN {
                    true => takes.push(self.take_direct_of(key, stand)),
                    false => missing.push(key),
                }
            }
            for Brought { feed, upto, growth, noted } in try_join_all(takes).await? {
                served.push(feed);
                seq = seq.min(upto);
                listens = both(listens, noted);
                grown.extend(growth);
            }
            let (all, come) = try_join(self.archive().feeds(), self.inboxes().present(&missing)).await?;
            served.extend(missing.iter().filter(|key| !come.contains(key)).map(|key| key.feed));
            for key in come {
                self.feeds.rebuild(key).await?;
            }
            let feeds = all.clone();
            left = self.known.learn(all, &served);
            if left.is_empty() {
                if let Some((noter, noted)) = self.noter.as_ref().zip(listens) {
                    self.note_direct(noter, reader, (noted, seq), &feeds).await?;
                }
                return Ok((Event::Direct { reader, seq }, grown));
            }
        }
        Err(contended(DELIVERY))
    }

    /// Notes items that are addressed to a reader who listens: those after the number `noted`, up to `upto`.
    async fn note_direct(
        &self,
        noter: &Noter,
        reader: UserNo,
        (Listens { noted, quiet }, upto): (Listens, DirectSeq),
        feeds: &[FeedId],
    ) -> Result<()> {
        if noted >= upto {
            return Ok(());
        }
        let told = if quiet { &[] } else { feeds };
        // A ranking is made by a recommender: nobody waits for it, so nobody is told of it.
        let named = self.feeds.named();
        let told = told.iter().filter(|feed| !named.is_ranked(**feed));
        let notes = told.map(|&feed| self.addressed(InboxKey { reader, feed }, noted, upto));
        noter.note_direct(reader, upto, try_join_all(notes).await?.into_iter().flatten().collect()).await
    }

    /// The new items that others have addressed to the reader in one feed, from the number `after` to `upto`, as a
    /// note. Reads all of them, some at a time, because the newest is the last one.
    async fn addressed(&self, key: InboxKey, mut after: DirectSeq, upto: DirectSeq) -> Result<Option<Note>> {
        let (mut note, mut last) = (None, None);
        loop {
            let from = Watermarks { pull: PullSeq::MAX, direct: after };
            let news = self.archive().news(key, from, self.take_max).await?;
            let made_anew = self.made_anew(may_replace(last.as_ref(), &news.entries)).await?;
            note = added(note, note_of(key, last.as_ref(), &news.entries, &made_anew));
            let next = news.upto.direct;
            if news.entries.len() < self.take_max || next >= upto || next <= after {
                return Ok(note);
            }
            (after, last) = (next, news.entries.into_iter().next_back());
        }
    }

    /// Gives the items that tell nothing new although they were just added: a line of notifications that was made anew,
    /// and an item that is gone by now. An item of a backend is news, also if it takes the rank of a deleted one.
    async fn made_anew(&self, items: Vec<ItemId>) -> Result<HashSet<ItemId>> {
        if items.is_empty() {
            return Ok(HashSet::new());
        }
        let found = self.archive().items(&items).await?.into_iter();
        let of_lines = found.map(|item| item.is_none_or(|item| is_notification(item.foreign_id.as_deref())));
        Ok(items.into_iter().zip(of_lines).filter_map(|(item, of_line)| of_line.then_some(item)).collect())
    }

    /// Brings items that are addressed to the reader to one inbox. `stand` is the state in which the inbox was read;
    /// `None` if there was no inbox.
    async fn take_direct_of(&self, key: InboxKey, mut stand: Option<Stand>) -> Result<Brought> {
        let InboxKey { reader, feed } = key;
        let (mut growth, mut noted) = (None, None);
        let mut overtaken = 0;
        while overtaken < TRIES {
            let after = stand.map_or(NOTHING, |stand| stand.taken);
            let news = self.archive().news(key, after, self.take_max).await?;
            let upto = news.upto.direct;
            noted = both(noted, news.noted.map(|noted| Listens { noted, quiet: news.quiet }));
            let whole = news.entries.len() < self.take_max;
            let traced = trace::noted(news.entries.iter().map(|entry| (entry.key.item, entry.op)));
            let (epoch, expected) = stand.map_or_else(Default::default, |stand| (stand.head.epoch, stand.taken));
            let step = Take { key, epoch, expected, next: news.upto, entries: news.entries, counter: news.counter };
            failpoint::hit("news-read");
            let taken = self.inboxes().take(step).await?;
            failpoint::hit("news-taken");
            match taken {
                Taken::Moved { head, .. } => {
                    if !news.quiet {
                        growth = Some(Growth { traced, ..Growth::of_one(key, reader, head) });
                    }
                    if whole {
                        return Ok(Brought { feed, upto, growth, noted });
                    }
                }
                // There is no inbox. If one is built later, the build brings these items.
                Taken::Missing => return Ok(Brought { feed, upto, growth, noted }),
                Taken::Overtaken => overtaken += 1,
                // An inbox is being built, and the build may have read the Archive before these items were there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_item_that_comes_while_imported_ones_are_brought_is_told() {
        let read = |noted, quiet| Some(Listens { noted, quiet });
        assert_eq!(both(read(3, true), read(3, false)), read(3, false));
        assert_eq!(both(read(3, false), read(4, true)), read(4, false));
        assert_eq!(both(read(3, true), read(4, true)), read(4, true));
        assert_eq!((both(None, read(3, true)), both(read(3, false), None)), (read(3, true), read(3, false)));
    }
}
