//! Compares what feeds hold with the answers of the most simple implementation, over random histories.

mod happen;
mod history;
mod naive;
mod people;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, Event, FeedAdd, FeedState, PullHead};
use feedgate_common::rules::is_past;
use feedgate_common::{Cut, DisplayKey, Entry, FeedId, InboxKey, Progress, UserNo, Watermarks};

use super::{NOW, OneEdge, user};
use happen::{World, name};
pub use history::{History, Step};
use history::{NAMED, USERS};
use naive::Naive;

/// Lets `history` happen in an empty Archive with its `pull_above`, and compares every answer about feeds with that of
/// the simple implementation.
pub async fn i4_feeds_agree_with_the_naive_rule(archive: Arc<dyn Archive>, history: &History) {
    let names: Vec<_> = (0..USERS).map(|who| user(&name(who))).collect();
    let users = archive.intern(&names).await.unwrap();
    archive.intern_feeds(&NAMED.map(Into::into)).await.unwrap();
    let feeds = archive.feeds().await.unwrap();
    assert_eq!(feeds.len(), 1 + NAMED.len());
    let mut world = World { archive: &*archive, naive: Naive::default(), users, feeds, pull_above: history.pull_above };
    for (step, now) in history.steps.iter().zip(NOW..) {
        world.step(*step, now).await;
    }
    let asked = Asked { archive: &*archive, naive: world.naive, users: world.users, history };
    asked.outboxes_agree().await;
    for &user in &asked.users {
        asked.people_agree(user).await;
        for &feed in &world.feeds {
            asked.feed_agrees(InboxKey { reader: user, feed }).await;
        }
    }
    asked.reposts_agree().await;
    asked.events_agree().await;
}

/// An Archive after a history, and what it should answer.
struct Asked<'a> {
    archive: &'a dyn Archive,
    naive: Naive,
    users: Vec<UserNo>,
    history: &'a History,
}

impl Asked<'_> {
    /// Compares all answers about one feed of one user, who is asked about as a reader and as an author.
    async fn feed_agrees(&self, key: InboxKey) {
        self.profile_agrees(key.reader, key.feed).await;
        self.news_agree(key).await;
        for backfill in [0, 2, 100] {
            self.doors_agree(key, backfill).await;
            self.deep_pages_agree(key, backfill).await;
            for limit in [0, 1, 5, 1000] {
                self.rebuilds_agree(key, backfill, limit).await;
            }
        }
    }

    fn part(&self, of: u64) -> u64 {
        of * self.history.done / 100
    }

    /// How far the push of an author has come in every bucket.
    fn progress(&self, author: UserNo) -> Progress {
        let head = self.naive.head(author);
        let done = self.part(head);
        Progress { done, last: Some(self.users[USERS / 2]).filter(|_| self.history.half && done < head) }
    }

    async fn outboxes_agree(&self) {
        let mut heads = vec![];
        for &author in &self.users {
            let outbox = self.archive.outbox(author, 0, 1000).await.unwrap();
            let records: Vec<_> = self.naive.records(author).iter().map(|(record, _)| *record).collect();
            assert_eq!(outbox.records, records, "routes and feeds, too");
            assert_eq!((outbox.head, outbox.last_pull), (self.naive.head(author), self.naive.last_pull(author)));
            assert_eq!(self.archive.author(author).await.unwrap(), self.naive.author(author));
            heads.push(PullHead { pull_seq: outbox.last_pull, author });
        }
        assert_eq!(self.archive.pull_head().await.unwrap(), self.naive.pull_head);
        heads.sort_unstable();
        for after in [0, self.part(self.naive.pull_head), self.naive.pull_head, u64::MAX] {
            let wants: Vec<PullHead> = heads.iter().copied().filter(|head| head.pull_seq > after).collect();
            assert_eq!(self.archive.pull_heads(after, 100).await.unwrap(), wants);
            let first = &wants[..wants.len().min(1)];
            assert_eq!(self.archive.pull_heads(after, 1).await.unwrap(), first);
        }
    }

    async fn profile_agrees(&self, author: UserNo, feed: FeedId) {
        let wants = self.naive.profile(author, feed);
        for limit in [2, 1000] {
            let (mut shown, mut before): (Vec<DisplayKey>, _) = (vec![], None);
            loop {
                let page = self.archive.profile(author, feed, before, limit).await.unwrap();
                shown.extend(&page);
                if page.len() < limit {
                    break;
                }
                before = page.last().copied();
            }
            assert_eq!(shown, wants, "the profile of {author:?} in {feed:?}, {limit} a page");
        }
    }

    /// Compares news from every watermark and in steps of any size: they must be exactly what the feed pulls and what
    /// is addressed to it.
    async fn news_agree(&self, key: InboxKey) {
        let Self { archive, naive, users, .. } = self;
        let heads = naive.heads(key.reader);
        let (pulled, addressed) = (naive.pulled(key, users), naive.addressed(key));
        let some = Watermarks { pull: self.part(heads.pull), direct: self.part(heads.direct) };
        let beyond = Watermarks { pull: u64::MAX, direct: u64::MAX };
        for start in [Watermarks::default(), some, heads, beyond] {
            for limit in [1, 3, 1000] {
                let mut after = start;
                loop {
                    let news = archive.news(key, after, limit).await.unwrap();
                    let upto = news.upto;
                    let pulls = between(&pulled, after.pull, upto.pull);
                    let wants: Vec<_> = pulls.chain(between(&addressed, after.direct, upto.direct)).collect();
                    assert_eq!(news.entries, wants, "after {after:?} up to {upto:?}");
                    assert!(wants.len() <= 2 * limit, "about {limit}, not {}", wants.len());
                    assert!(wants.len() >= limit || upto == heads, "fewer than {limit}: that is all");
                    let edges = naive.edges.iter().filter(|((who, _), _)| *who == key.reader);
                    assert!(edges.map(|(_, edge)| edge.generation).max().unwrap_or(0) <= news.counter);
                    if upto == heads {
                        break;
                    }
                    assert!(upto.pull >= after.pull && upto.direct >= after.direct && upto != after, "it goes on");
                    after = upto;
                }
            }
        }
    }

    async fn doors_agree(&self, key: InboxKey, backfill: usize) {
        for &author in &self.users {
            for pull in [0, self.part(self.naive.pull_head), self.naive.pull_head] {
                let cut = Cut { progress: self.progress(author), pull };
                let state = self.archive.edge_state(key, author, cut, backfill).await.unwrap();
                assert_eq!(state.edge, self.naive.edge(key.reader, author));
                let wants = self.naive.brought(key, author, backfill, |add, n| is_past(cut, key.reader, add, n));
                assert_eq!((state.adds, state.floor), wants, "the follow door of {key:?}, cut at {cut:?}");
            }
        }
    }

    async fn deep_pages_agree(&self, key: InboxKey, backfill: usize) {
        let all = self.naive.feed(key, &self.users, backfill, |_| u64::MAX);
        let middle = all.get(all.len() / 2).map(|add| add.key.rank);
        for (limit, least_rank) in [(1, None), (4, middle), (1000, None), (1000, middle)] {
            let (mut shown, mut before): (_, Option<DisplayKey>) = (vec![], None);
            loop {
                let page = self.archive.feed_below(key, Below { before, least_rank, limit }, backfill).await.unwrap();
                shown.extend(page.iter().copied());
                if page.len() < limit {
                    break;
                }
                before = page.last().map(|add| add.key);
            }
            let wants: Vec<_> = all.iter().copied().filter(|a| least_rank.is_none_or(|r| a.key.rank >= r)).collect();
            assert_eq!(shown, wants, "deep pages of {key:?}, {limit} each, down to {least_rank:?}");
        }
    }

    async fn rebuilds_agree(&self, key: InboxKey, backfill: usize, limit: usize) {
        let Self { archive, naive, users, .. } = self;
        let reader = key.reader;
        let followees = naive.followees(reader, users);
        let cuts: Vec<_> = followees.iter().map(|author| (*author, self.progress(*author))).collect();
        let state = archive.build(key, &cuts, backfill, limit).await.unwrap();
        let mut wants = naive.feed(key, users, backfill, |_| u64::MAX);
        let floor = wants.get(limit).map(|add| add.key);
        wants.truncate(limit);
        let newest = naive.edges.iter().filter(|((r, _), _)| *r == reader).map(|(_, edge)| edge.generation).max();
        assert!(state.built_at >= newest.unwrap_or(0), "the counter covers every edge of the snapshot");
        assert_eq!(state.floor, floor, "the greatest key left out");
        assert_eq!(state.taken, naive.heads(reader), "nothing is left to take in");
        let held = |author: &UserNo| naive.edges.get(&(reader, *author)).is_some_and(|edge| edge.generation > 0);
        let heads = followees.into_iter().filter(held).map(|author| (author, naive.head(author)));
        let mut ahead = state.ahead.clone();
        ahead.sort_unstable();
        assert_eq!(ahead, heads.filter(|(author, head)| *head > self.progress(*author).done).collect::<Vec<_>>());
        authors_stand_in_outbox_order(&state);
        let mut adds = state.adds;
        adds.sort_unstable_by_key(|add| Reverse(add.key));
        assert_eq!(adds, wants, "what a rebuilt inbox of {key:?} holds");
    }

    /// Compares the outstanding events. Nothing was finished, so all events are outstanding.
    async fn events_agree(&self) {
        let mut upto: HashMap<(bool, UserNo), u64> = HashMap::new();
        for line in self.archive.outstanding(None, i64::MAX, 10_000).await.unwrap() {
            let (key, seq) = match line.event {
                Event::Outbox { author, seq, .. } => ((false, author), seq),
                Event::Direct { reader, seq } => ((true, reader), seq),
                Event::Edge { .. } => continue,
            };
            let known = upto.entry(key).or_default();
            *known = seq.max(*known);
        }
        for &user in &self.users {
            assert_eq!(upto.remove(&(false, user)).unwrap_or(0), self.naive.head(user));
            assert_eq!(upto.remove(&(true, user)).unwrap_or(0), self.naive.heads(user).direct);
        }
        assert_eq!(upto, HashMap::new());
    }
}

/// The entries with a number above `after` and up to `upto`.
fn between(numbered: &[(u64, Entry)], after: u64, upto: u64) -> impl Iterator<Item = Entry> {
    numbered.iter().filter(move |(number, _)| *number > after && *number <= upto).map(|(_, entry)| *entry)
}

/// Checks the order of adds: those of one author stand in outbox order, and among the next adds of all authors the
/// oldest in display order comes first. What is addressed to the reader stands in no outbox, so display order alone
/// decides its place.
fn authors_stand_in_outbox_order(state: &FeedState) {
    for (at, add) in state.adds.iter().enumerate() {
        let rest = &state.adds[at + 1..];
        let line = |add: &FeedAdd| (add.author, add.outbox_seq == 0);
        let mut own = rest.iter().filter(|later| line(later) == line(add));
        assert!(own.all(|later| (later.outbox_seq, later.key) > (add.outbox_seq, add.key)), "each author's in order");
        let mut seen = vec![line(add)];
        for later in rest {
            if !seen.contains(&line(later)) {
                seen.push(line(later));
                assert!(later.key > add.key, "of the authors' next adds, the oldest first");
            }
        }
    }
}
