//! Compares inboxes with the Archive, for an operator who wants to know whether feeds show the right items.
//!
//! ```text
//!   log, with what its reader pulls ─▶ what it shows above its floor ─┐
//!   Archive ─▶ what the feed holds above that floor ──────────────────┴─▶ the same? else: is work outstanding for it?
//! ```
//!
//! At or below its floor a feed is read from the Archive, so there is nothing to compare. An item that is not in an
//! inbox yet and has an outstanding event is no fault: a worker brings it. An inbox that does not exist is built when
//! its reader comes, and is not looked at.

use std::collections::BTreeSet;

use super::page::{FoundAdd, is_above, shown_above};
use super::{Changes, FETCH};
use crate::archive::{Below, Event, Outstanding};
use crate::doctor::Check;
use crate::error::Result;
use crate::{DisplayKey, FeedId, InboxKey, Millis, UserId, UserNo};

/// How often an inbox is compared at most, if it goes on to differ.
const LOOKS: usize = 5;

/// How many outstanding events one read asks for.
const EVENTS: usize = 1000;

/// How an inbox differs from what its feed is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Difference {
    /// Items of the Archive that the log does not show.
    missing: BTreeSet<FoundAdd>,
    /// Items that the log shows and the Archive does not.
    surplus: BTreeSet<FoundAdd>,
}

impl Changes {
    /// Compares up to `most` inboxes with the Archive, spread over all users; all of them if that is `None`. `pause` is
    /// awaited before an inbox that differs is looked at again, for a store on which servers go on.
    ///
    /// What readers pull is taken into their inboxes, as any read does. The feeds must have the settings of the
    /// servers: if a follow brings another number of items there, right inboxes differ too. A comparison takes a
    /// read for all inboxes of [`FETCH`] users, and a few reads for each inbox. It may be dropped at any time.
    ///
    /// # Errors
    /// The errors of the stores. An inbox that differs is no error but a finding.
    pub async fn compare(&self, most: Option<u64>, pause: impl AsyncFn()) -> Result<Check> {
        let mut check = Check::of("inboxes");
        let (archive, inboxes) = (&self.feeds.archive, &self.feeds.inboxes);
        let (users, feeds) = (archive.counts().await?.users, archive.feeds().await?);
        // Numbers of users begin at 1, so the greatest number is `users`. No inbox has the number 0.
        let mut readers = spread(users + 1);
        loop {
            let some: Vec<UserNo> = readers.by_ref().take(FETCH).collect();
            if some.is_empty() {
                return Ok(check);
            }
            let inboxes_of = |reader| feeds.iter().map(move |feed| InboxKey { reader, feed: *feed });
            let keys: Vec<InboxKey> = some.into_iter().flat_map(inboxes_of).collect();
            for key in inboxes.present(&keys).await? {
                if most.is_some_and(|most| check.looked_at >= most) {
                    return Ok(check);
                }
                check.look();
                if let Some(difference) = self.differs_for_good(key, &pause).await? {
                    let names = archive.user_ids(&[key.reader]).await?;
                    check.find(worded(key.feed, &names[0], &difference));
                }
            }
        }
    }

    /// How an inbox differs for which no work is outstanding; `None` if the inbox does not differ, or if outstanding
    /// work may mend it.
    async fn differs_for_good(&self, key: InboxKey, pause: &impl AsyncFn()) -> Result<Option<Difference>> {
        let mut last = None;
        for _ in 0..LOOKS {
            self.heard_pull(self.feeds.archive.pull_head().await?);
            let Some(found) = self.difference(key).await? else { return Ok(None) };
            // Outstanding work is asked for after the comparison, so that what was finished before it is in the log.
            if self.is_outstanding(key.reader, &found).await? {
                return Ok(None);
            }
            if last.as_ref() == Some(&found) {
                break;
            }
            last = Some(found);
            pause().await;
        }
        Ok(last)
    }

    /// How an inbox differs now; `None` if it does not, or if there is no inbox.
    async fn difference(&self, key: InboxKey) -> Result<Option<Difference>> {
        if self.feeds.inboxes.stand(key).await?.is_none() {
            return Ok(None);
        }
        let log = self.log(key).await?;
        let shown = shown_above(&log);
        let wanted = self.wanted(key, log.floor).await?;
        let difference = Difference { missing: &wanted - &shown, surplus: &shown - &wanted };
        Ok((difference.missing.len() + difference.surplus.len() > 0).then_some(difference))
    }

    /// What the feed holds above the floor of its log, by the Archive alone.
    async fn wanted(&self, key: InboxKey, floor: Option<DisplayKey>) -> Result<BTreeSet<FoundAdd>> {
        let mut wanted = BTreeSet::new();
        let mut below = Below::newest(FETCH);
        loop {
            let adds = self.feeds.archive.feed_below(key, below, self.feeds.backfill).await?;
            let above = adds.iter().take_while(|add| is_above(floor, &add.key));
            let before = wanted.len();
            wanted.extend(above.map(|add| FoundAdd { key: add.key, author: add.author, direct: add.outbox_seq == 0 }));
            if adds.len() < below.limit || wanted.len() < before + adds.len() {
                return Ok(wanted);
            }
            below.before = adds.last().map(|add| add.key);
        }
    }

    /// Whether an outstanding event may still change the adds that differ.
    async fn is_outstanding(&self, reader: UserNo, difference: &Difference) -> Result<bool> {
        let differing = || difference.missing.iter().chain(&difference.surplus);
        let authors: BTreeSet<UserNo> = differing().map(|add| add.author).collect();
        let is_of = |event: Event| match event {
            Event::Outbox { author, .. } => authors.contains(&author),
            Event::Edge { reader: of, author, .. } => of == reader && authors.contains(&author),
            Event::Direct { reader: of, .. } => of == reader,
        };
        let mut after: Option<Outstanding> = None;
        loop {
            let lines = self.feeds.archive.outstanding(after, Millis::MAX, EVENTS).await?;
            if lines.iter().any(|line| is_of(line.event)) {
                return Ok(true);
            }
            after = lines.last().copied();
            if lines.len() < EVENTS {
                return Ok(false);
            }
        }
    }
}

/// The numbers below `count`, each once, in an order in which any part of them is spread over all.
fn spread(count: u64) -> impl Iterator<Item = UserNo> {
    // The part of the golden ratio behind its point; the next odd number that has no divisor in common with `count`.
    let ideal = (count as f64 * 0.618_033_988_749_894_9) as u64 | 1;
    let step = (ideal..).find(|step| gcd(*step, count) == 1).unwrap_or(1);
    (0..count).map(move |nth| {
        UserNo(u32::try_from(u128::from(nth) * u128::from(step) % u128::from(count)).unwrap_or(u32::MAX))
    })
}

/// The greatest number that divides both.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The finding for an operator.
fn worded(feed: FeedId, user: &UserId, Difference { missing, surplus }: &Difference) -> String {
    let feed = if feed == FeedId::MAIN { "the feed".to_owned() } else { format!("named feed {}", feed.0) };
    let of = |what: &str, adds: &BTreeSet<FoundAdd>| {
        Some(format!("{} items {what}, the newest {}", adds.len(), adds.last()?.key.item))
    };
    let both: Vec<String> = [of("are missing", missing), of("are too many", surplus)].into_iter().flatten().collect();
    format!("{feed} of {user}: {}", both.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all_users_and_names_each_once() {
        for count in [1, 2, 7, 10, 1000, 1024] {
            let all: Vec<u64> = spread(count).map(|user| u64::from(user.0)).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            let of_a_half = |lower: bool| all.iter().take(10).filter(|user| (**user < count / 2) == lower).count();
            assert!(count < 1000 || of_a_half(true).abs_diff(of_a_half(false)) <= 2, "{all:?}");
        }
    }
}
