//! What feeds hold, worked out a second time in the most naive way, over random histories.

mod happen;
mod history;
mod naive;
mod people;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use feedgate_common::archive::{Archive, Built, Event, FeedAdd, FeedState, PullHead};
use feedgate_common::rules::is_past;
use feedgate_common::{Cut, DisplayKey, InboxKey, Progress, UserNo, Watermarks};

use super::{NOW, user};
use happen::{World, name};
use history::USERS;
pub use history::{History, Step};
use naive::Naive;

/// Lets `history` happen in an empty Archive that pulls above its number, and compares every answer about feeds with the
/// naive rule.
pub async fn i4_feeds_agree_with_the_naive_rule(archive: Arc<dyn Archive>, history: &History) {
    let names: Vec<_> = (0..USERS).map(|who| user(&name(who))).collect();
    let users = archive.intern(&names).await.unwrap();
    let naive = Naive::default();
    let mut world = World { archive: &*archive, naive, users, pull_above: history.pull_above };
    for (step, now) in history.steps.iter().zip(NOW..) {
        world.step(*step, now).await;
    }
    let asked = Asked { archive: &*archive, naive: world.naive, users: world.users, history };
    asked.outboxes_agree().await;
    for &user in &asked.users {
        asked.people_agree(user).await;
        asked.news_agree(user).await;
        for backfill in [0, 2, 100] {
            asked.doors_agree(user, backfill).await;
            asked.deep_pages_agree(user, backfill).await;
            for limit in [0, 1, 5, 1000] {
                asked.rebuilds_agree(user, backfill, limit).await;
            }
        }
    }
    asked.events_agree().await;
}

/// An Archive after its history.
struct Asked<'a> {
    archive: &'a dyn Archive,
    naive: Naive,
    users: Vec<UserNo>,
    history: &'a History,
}

impl Asked<'_> {
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
            assert_eq!(outbox.records, records, "routes, too");
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

    /// From every watermark, in steps of any size, news are exactly what is pulled and what is addressed.
    async fn news_agree(&self, reader: UserNo) {
        let Self { archive, naive, users, .. } = self;
        let heads = Watermarks { pull: naive.pull_head, direct: naive.addressed(reader).len() as u64 };
        let (pulled, addressed) = (naive.pulled(reader, users), naive.addressed(reader));
        let some = Watermarks { pull: self.part(heads.pull), direct: self.part(heads.direct) };
        let beyond = Watermarks { pull: u64::MAX, direct: u64::MAX };
        for start in [Watermarks::default(), some, heads, beyond] {
            for limit in [1, 3, 1000] {
                let mut after = start;
                loop {
                    let news = archive.news(InboxKey::main(reader), after, limit).await.unwrap();
                    let upto = news.upto;
                    let pulls = pulled.iter().filter(|(number, _)| *number > after.pull && *number <= upto.pull);
                    let from = after.direct.min(heads.direct) as usize;
                    let directs = &addressed[from..upto.direct as usize];
                    let wants: Vec<_> = pulls.map(|(_, entry)| *entry).chain(directs.iter().copied()).collect();
                    assert_eq!(news.entries, wants, "after {after:?} up to {upto:?}");
                    assert!(wants.len() <= 2 * limit, "about {limit}, not {}", wants.len());
                    let edges = naive.edges.iter().filter(|((who, _), _)| *who == reader);
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

    async fn doors_agree(&self, reader: UserNo, backfill: usize) {
        for &author in &self.users {
            for pull in [0, self.part(self.naive.pull_head), self.naive.pull_head] {
                let cut = Cut { progress: self.progress(author), pull };
                let state = self.archive.edge_state(InboxKey::main(reader), author, cut, backfill).await.unwrap();
                assert_eq!(state.edge, self.naive.edge(reader, author));
                let wants = self.naive.shown(reader, author, backfill, |add, n| is_past(cut, reader, add, n));
                assert_eq!(state.adds, wants, "the follow door, cut at {cut:?}");
            }
        }
    }

    async fn deep_pages_agree(&self, reader: UserNo, backfill: usize) {
        let all = self.naive.feed(reader, &self.users, backfill, |_| u64::MAX);
        let middle = all.get(all.len() / 2).map(|add| add.key.rank);
        for (limit, least_rank) in [(1, None), (4, middle), (1000, None), (1000, middle)] {
            let (mut shown, mut before): (_, Option<DisplayKey>) = (vec![], None);
            loop {
                let page =
                    self.archive.feed_below(InboxKey::main(reader), before, least_rank, backfill, limit).await.unwrap();
                shown.extend(page.iter().copied());
                if page.len() < limit {
                    break;
                }
                before = page.last().map(|add| add.key);
            }
            let wants: Vec<_> = all.iter().copied().filter(|a| least_rank.is_none_or(|r| a.key.rank >= r)).collect();
            assert_eq!(shown, wants, "deep pages of {limit} down to {least_rank:?}");
        }
    }

    async fn rebuilds_agree(&self, reader: UserNo, backfill: usize, limit: usize) {
        let Self { archive, naive, users, .. } = self;
        let followees = naive.followees(reader, users);
        let cuts: Vec<_> = followees.iter().map(|author| (*author, self.progress(*author))).collect();
        let Built::State(state) = archive.build(InboxKey::main(reader), &cuts, backfill, limit).await.unwrap() else {
            panic!("every cut was given");
        };
        let mut wants = naive.feed(reader, users, backfill, |author| self.progress(author).cut_for(reader));
        let floor = wants.get(limit).map(|add| add.key);
        wants.truncate(limit);
        let newest = naive.edges.iter().filter(|((r, _), _)| *r == reader).map(|(_, edge)| edge.generation).max();
        assert!(state.built_at >= newest.unwrap_or(0), "the counter covers every edge of the snapshot");
        assert_eq!(state.floor, floor, "the greatest key left out");
        let taken = Watermarks { pull: naive.pull_head, direct: naive.addressed(reader).len() as u64 };
        assert_eq!(state.taken, taken, "nothing is left to take in");
        let lags = |author: &UserNo| naive.head(*author) > self.progress(*author).done;
        let mut lagging = state.lagging.clone();
        lagging.sort_unstable();
        assert_eq!(lagging, followees.into_iter().filter(lags).collect::<Vec<_>>());
        authors_stand_in_outbox_order(&state);
        let mut adds = state.adds;
        adds.sort_unstable_by_key(|add| Reverse(add.key));
        assert_eq!(adds, wants, "what a rebuilt inbox holds");
    }

    /// Nothing was finished: all of it is outstanding.
    async fn events_agree(&self) {
        let mut upto: HashMap<(bool, UserNo), u64> = HashMap::new();
        for line in self.archive.outstanding(None, i64::MAX, 10_000).await.unwrap() {
            let (key, seq) = match line.event {
                Event::Outbox { author, seq } => ((false, author), seq),
                Event::Direct { reader, seq } => ((true, reader), seq),
                Event::Edge { .. } => continue,
            };
            let known = upto.entry(key).or_default();
            *known = seq.max(*known);
        }
        for &user in &self.users {
            assert_eq!(upto.remove(&(false, user)).unwrap_or(0), self.naive.head(user));
            assert_eq!(upto.remove(&(true, user)).unwrap_or(0), self.naive.addressed(user).len() as u64);
        }
        assert_eq!(upto, HashMap::new());
    }
}

/// And among the next adds of all authors, the oldest in display order stands first. What is addressed to the reader has
/// no place in an outbox: it stands in display order.
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
