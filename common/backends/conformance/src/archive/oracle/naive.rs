//! The truth in vectors: every question reads all of it, by the rules as they are said once.

use std::cmp::Reverse;
use std::collections::HashMap;

use feedgate_common::archive::{Author, Edge, FeedAdd};
use feedgate_common::change::{Class, Route};
use feedgate_common::graph::{Shield, Shields, effective_edge};
use feedgate_common::{DisplayKey, Entry, FeedId, Millis, Op, OutboxSeq, PullSeq, Record, UserNo, rules};

/// An author's records, each with its pull number, or 0; and how the author is classed.
#[derive(Default)]
pub(super) struct Outbox {
    pub(super) records: Vec<(Record, PullSeq)>,
    pub(super) class: Class,
    pub(super) everyone_since: Option<OutboxSeq>,
}

/// What is held of a reader and an author.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) follows: bool,
    pub(super) since: Millis,
    pub(super) shields: Shields,
}

impl Held {
    pub(super) fn on(self) -> bool {
        self.follows && self.shields == Shields::default()
    }
}

/// A published item: whose, and for whom if not for the followers.
pub(super) struct Published {
    pub(super) author: UserNo,
    pub(super) key: DisplayKey,
    pub(super) readers: Vec<UserNo>,
    pub(super) direct: bool,
    pub(super) living: bool,
}

/// See the module.
#[derive(Default)]
pub(super) struct Naive {
    pub(super) outboxes: HashMap<UserNo, Outbox>,
    pub(super) items: Vec<Published>,
    /// By (reader, author).
    pub(super) held: HashMap<(UserNo, UserNo), Held>,
    /// What the Archive answered for those of `held`; only their generations cannot be worked out.
    pub(super) edges: HashMap<(UserNo, UserNo), Edge>,
    /// User, shield, against whom, since when; in order.
    pub(super) shields: Vec<(UserNo, Shield, UserNo, Millis)>,
    /// What is addressed to a reader.
    pub(super) directs: HashMap<UserNo, Vec<Entry>>,
    pub(super) pull_head: PullSeq,
}

impl Naive {
    pub(super) fn records(&self, author: UserNo) -> &[(Record, PullSeq)] {
        self.outboxes.get(&author).map_or(&[], |outbox| &outbox.records)
    }

    pub(super) fn head(&self, author: UserNo) -> OutboxSeq {
        self.records(author).len() as OutboxSeq
    }

    pub(super) fn last_pull(&self, author: UserNo) -> PullSeq {
        self.records(author).iter().map(|(_, pull_seq)| *pull_seq).max().unwrap_or(0)
    }

    pub(super) fn append(&mut self, author: UserNo, op: Op, route: Route, key: DisplayKey) {
        let seq = self.head(author) + 1;
        let pull_seq = if route == Route::Pull { self.pull_head + 1 } else { 0 };
        self.pull_head = self.pull_head.max(pull_seq);
        self.outboxes
            .entry(author)
            .or_default()
            .records
            .push((Record { seq, op, route, feed: FeedId::MAIN, key }, pull_seq));
    }

    pub(super) fn everyone_since(&self, author: UserNo) -> Option<OutboxSeq> {
        self.outboxes.get(&author).and_then(|outbox| outbox.everyone_since)
    }

    pub(super) fn edge(&self, reader: UserNo, author: UserNo) -> Edge {
        let of_everyone = || effective_edge(None, self.everyone_since(author));
        self.edges.get(&(reader, author)).copied().unwrap_or_else(of_everyone)
    }

    pub(super) fn author(&self, author: UserNo) -> Author {
        let followers = self.held.iter().filter(|((_, whom), held)| *whom == author && held.on()).count() as u64;
        let class = self.outboxes.get(&author).map_or(Class::Auto, |outbox| outbox.class);
        Author { class, followers, head: self.head(author), everyone_since: self.everyone_since(author) }
    }

    /// Ascending.
    pub(super) fn followees(&self, reader: UserNo, among: &[UserNo]) -> Vec<UserNo> {
        let mut authors: Vec<UserNo> = among.iter().copied().filter(|author| self.edge(reader, *author).on).collect();
        authors.sort_unstable();
        authors
    }

    /// The adds one edge shows, in outbox order: of those since the follow, the ones that were `reached`.
    pub(super) fn shown(
        &self,
        reader: UserNo,
        author: UserNo,
        backfill: usize,
        reached: impl Fn(&Record, PullSeq) -> bool,
    ) -> Vec<FeedAdd> {
        let edge = self.edge(reader, author);
        let (outbox, numbers): (Vec<Record>, Vec<PullSeq>) = self.records(author).iter().copied().unzip();
        let adds = rules::shown(&outbox, edge, backfill, |add| reached(add, numbers[add.seq as usize - 1]));
        let add = |add: &Record| FeedAdd { author, outbox_seq: add.seq, generation: edge.generation, key: add.key };
        adds.iter().map(add).collect()
    }

    /// The whole feed, newest first: of those since the follow, what `pushed` and all that is pulled.
    pub(super) fn feed(
        &self,
        reader: UserNo,
        among: &[UserNo],
        backfill: usize,
        pushed: impl Fn(UserNo) -> OutboxSeq,
    ) -> Vec<FeedAdd> {
        let of = |author: &UserNo| {
            let cut = pushed(*author);
            self.shown(reader, *author, backfill, |add, _| add.route == Route::Pull || add.seq <= cut)
        };
        let mut all: Vec<FeedAdd> = among.iter().flat_map(of).collect();
        let addressed = self.items.iter().filter(|item| item.living && item.readers.contains(&reader));
        let add = |item: &Published| FeedAdd { author: item.author, outbox_seq: 0, generation: 0, key: item.key };
        all.extend(addressed.map(add));
        all.sort_unstable_by_key(|add| Reverse(add.key));
        all
    }

    /// What the reader pulls, by number.
    pub(super) fn pulled(&self, reader: UserNo, among: &[UserNo]) -> Vec<(PullSeq, Entry)> {
        let mut all = vec![];
        for &author in among {
            let edge = self.edge(reader, author);
            let records = self.records(author).iter().filter(|(record, n)| rules::is_news(record, *n, edge, 0));
            all.extend(records.map(|(record, n)| (*n, Entry::of(record, author, edge.generation))));
        }
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    pub(super) fn addressed(&self, reader: UserNo) -> &[Entry] {
        self.directs.get(&reader).map_or(&[], Vec::as_slice)
    }

    pub(super) fn blocks(&self, reader: UserNo, author: UserNo) -> bool {
        self.held.get(&(reader, author)).is_some_and(|held| held.shields.blocks())
    }

    /// Whom a user follows, or by whom they are followed: newest first.
    pub(super) fn follows(&self, user: UserNo, following: bool) -> Vec<(UserNo, Millis)> {
        let follows = self.held.iter().filter(|(_, held)| held.follows);
        let mut list: Vec<(UserNo, Millis)> = match following {
            true => follows.filter(|((who, _), _)| *who == user).map(|((_, whom), held)| (*whom, held.since)).collect(),
            false => {
                follows.filter(|((_, whom), _)| *whom == user).map(|((who, _), held)| (*who, held.since)).collect()
            }
        };
        list.sort_unstable_by_key(|(_, since)| Reverse(*since));
        list
    }
}
