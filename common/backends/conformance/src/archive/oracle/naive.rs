//! The simple implementation: the truth is kept in vectors, and every question reads all of it.
//!
//! Three more places compute what a feed holds; CONTRIBUTING.md lists them. This one is independent on purpose. An
//! Archive is asked about cuts, watermarks, routes and numbers of records, which no reader sees and which the others
//! do not have. The test is about the indexes of an Archive: so this takes the pure rules of `feedgate_common`, as the
//! Archive does, and has nothing else of an Archive.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use feedgate_common::archive::{Author, Edge, FeedAdd};
use feedgate_common::around::{Reach, Terms, shows_original};
use feedgate_common::change::{Class, Route};
use feedgate_common::graph::{Shield, Shields, effective_edge};
use feedgate_common::{
    DirectSeq, DisplayKey, Entry, FeedId, InboxKey, ItemId, Millis, OutboxSeq, PullSeq, Record, UserNo, Watermarks,
    rules,
};

/// An author's records, each with its pull number or 0, and the author's class.
#[derive(Default)]
pub(super) struct Outbox {
    pub(super) records: Vec<(Record, PullSeq)>,
    pub(super) class: Class,
    pub(super) everyone_since: Option<OutboxSeq>,
}

/// What is stored of an edge between a reader and an author.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) follows: bool,
    /// The reader has asked to follow, and has no answer yet.
    pub(super) asked: bool,
    pub(super) since: Millis,
    pub(super) shields: Shields,
}

impl Held {
    pub(super) fn on(self) -> bool {
        self.follows && self.shields == Shields::default()
    }
}

/// A published item: its author, its feed, and its readers if it is not for the followers.
pub(super) struct Published {
    pub(super) author: UserNo,
    pub(super) feed: FeedId,
    pub(super) key: DisplayKey,
    pub(super) readers: Vec<UserNo>,
    pub(super) direct: bool,
    /// The item that it reposts.
    pub(super) repost_of: Option<ItemId>,
    /// The users in the audience of the item, if it is narrowed.
    pub(super) audience: Option<Vec<UserNo>>,
    pub(super) living: bool,
}

/// All that an Archive should hold, in vectors and maps.
#[derive(Default)]
pub(super) struct Naive {
    pub(super) outboxes: HashMap<UserNo, Outbox>,
    pub(super) items: Vec<Published>,
    /// The authors who are private.
    pub(super) privates: HashSet<UserNo>,
    /// What is stored of each edge, by reader and author.
    pub(super) held: HashMap<(UserNo, UserNo), Held>,
    /// The edges that the Archive has answered for those in `held`. Only their generations cannot be computed here.
    pub(super) edges: HashMap<(UserNo, UserNo), Edge>,
    /// The edges of those that show all from the first record on.
    pub(super) whole: HashSet<(UserNo, UserNo)>,
    /// The shields in the order in which they went up: owner, kind, user on the other side, and time.
    pub(super) shields: Vec<(UserNo, Shield, UserNo, Millis)>,
    /// The records addressed to each reader, of all feeds; they share one count of numbers.
    pub(super) directs: HashMap<UserNo, Vec<(FeedId, Entry)>>,
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

    pub(super) fn append(&mut self, author: UserNo, record: Record) {
        assert_eq!(record.seq, self.head(author) + 1, "outboxes are dense, whatever goes to which feed");
        let pull_seq = if record.route == Route::Pull { self.pull_head + 1 } else { 0 };
        self.pull_head = self.pull_head.max(pull_seq);
        self.outboxes.entry(author).or_default().records.push((record, pull_seq));
    }

    pub(super) fn everyone_since(&self, author: UserNo) -> Option<OutboxSeq> {
        self.outboxes.get(&author).and_then(|outbox| outbox.everyone_since)
    }

    pub(super) fn edge(&self, reader: UserNo, author: UserNo) -> Edge {
        let of_everyone = || effective_edge(None, self.everyone_since(author).filter(|_| reader != author));
        self.edges.get(&(reader, author)).copied().unwrap_or_else(of_everyone)
    }

    pub(super) fn author(&self, author: UserNo) -> Author {
        let others = self.held.iter().filter(|((who, whom), _)| *whom == author && who != whom);
        let followers = others.filter(|(_, held)| held.on()).count() as u64;
        let class = self.outboxes.get(&author).map_or(Class::Auto, |outbox| outbox.class);
        let (head, everyone_since) = (self.head(author), self.everyone_since(author));
        Author { class, followers, head, everyone_since, private: self.privates.contains(&author) }
    }

    /// The authors among these whom the reader follows, ascending.
    pub(super) fn followees(&self, reader: UserNo, among: &[UserNo]) -> Vec<UserNo> {
        let mut authors: Vec<UserNo> = among.iter().copied().filter(|author| self.edge(reader, *author).on).collect();
        authors.sort_unstable();
        authors
    }

    /// The adds that one edge shows in a feed, in outbox order; of those after the follow, only the ones that were
    /// `reached`. Records of other feeds have no effect.
    pub(super) fn shown(
        &self,
        key: InboxKey,
        author: UserNo,
        backfill: usize,
        reached: impl Fn(&Record, PullSeq) -> bool,
    ) -> Vec<FeedAdd> {
        self.adds(key, author, &self.shown_records(key, author, backfill, reached))
    }

    /// Of what [`Self::shown`] gives, the adds that a follow step brings, and the floor that it raises.
    pub(super) fn brought(
        &self,
        key: InboxKey,
        author: UserNo,
        backfill: usize,
        reached: impl Fn(&Record, PullSeq) -> bool,
    ) -> (Vec<FeedAdd>, Option<DisplayKey>) {
        let shown = self.shown_records(key, author, backfill, reached);
        let (brought, floor) = rules::brought(shown, self.edge_and_past(key.reader, author), backfill);
        (self.adds(key, author, &brought), floor)
    }

    fn shown_records(
        &self,
        key: InboxKey,
        author: UserNo,
        backfill: usize,
        reached: impl Fn(&Record, PullSeq) -> bool,
    ) -> Vec<Record> {
        let records = self.records(author);
        let of_feed = records.iter().map(|(record, _)| *record).filter(|record| record.feed == key.feed);
        let (of_feed, number): (Vec<Record>, _) = (of_feed.collect(), |add: &Record| records[add.seq as usize - 1].1);
        let edge = self.edge_and_past(key.reader, author);
        let mut shown = rules::shown(&of_feed, edge, backfill, |add| reached(add, number(add)));
        shown.retain(|add| self.is_for(key.reader, add));
        shown
    }

    fn edge_and_past(&self, reader: UserNo, author: UserNo) -> (Edge, OutboxSeq) {
        let edge = self.edge(reader, author);
        // An author is shown all of its own items.
        let whole = author == reader || self.whole.contains(&(reader, author));
        (edge, if whole { 0 } else { edge.from })
    }

    fn adds(&self, key: InboxKey, author: UserNo, records: &[Record]) -> Vec<FeedAdd> {
        let generation = self.edge(key.reader, author).generation;
        let add = |add: &Record| FeedAdd { author, outbox_seq: add.seq, generation, key: add.key };
        records.iter().map(add).collect()
    }

    /// Whether an add is for the reader, if the reader follows; one's own is.
    fn is_for(&self, reader: UserNo, add: &Record) -> bool {
        let item = self.items.iter().find(|item| item.key == add.key).expect("it was published");
        item.author == reader || item.audience.as_ref().is_none_or(|readers| readers.contains(&reader))
    }

    /// The whole feed, newest first. Of the adds after a follow it has those of route push that were `pushed`, and all
    /// of route pull.
    pub(super) fn feed(
        &self,
        key: InboxKey,
        among: &[UserNo],
        backfill: usize,
        pushed: impl Fn(UserNo) -> OutboxSeq,
    ) -> Vec<FeedAdd> {
        let of = |author: &UserNo| {
            let cut = pushed(*author);
            self.shown(key, *author, backfill, |add, _| add.route == Route::Pull || add.seq <= cut)
        };
        let mut all: Vec<FeedAdd> = among.iter().flat_map(of).collect();
        let addresses = |item: &&Published| item.feed == key.feed && item.readers.contains(&key.reader);
        let addressed = self.items.iter().filter(|item| item.living).filter(addresses);
        let add = |item: &Published| FeedAdd { author: item.author, outbox_seq: 0, generation: 0, key: item.key };
        all.extend(addressed.map(add));
        all.sort_unstable_by_key(|add| Reverse(add.key));
        all
    }

    /// The records that the reader's feed pulls, by number.
    pub(super) fn pulled(&self, key: InboxKey, among: &[UserNo]) -> Vec<(PullSeq, Entry)> {
        let mut all = vec![];
        for &author in among {
            let edge = self.edge(key.reader, author);
            let news =
                |(record, n): &&(Record, PullSeq)| record.feed == key.feed && rules::is_news(record, *n, edge, 0);
            let records = self.records(author).iter().filter(news);
            all.extend(records.map(|(record, n)| (*n, Entry::of(record, author, edge.generation))));
        }
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    /// The records addressed to the reader in this feed, by number.
    pub(super) fn addressed(&self, key: InboxKey) -> Vec<(DirectSeq, Entry)> {
        let all = self.directs.get(&key.reader).into_iter().flatten().zip(1..);
        all.filter(|((feed, _), _)| *feed == key.feed).map(|((_, entry), number)| (number, *entry)).collect()
    }

    /// How far the records of route pull go, and those addressed to this reader, in all feeds.
    pub(super) fn heads(&self, reader: UserNo) -> Watermarks {
        Watermarks { pull: self.pull_head, direct: self.directs.get(&reader).map_or(0, |of| of.len() as DirectSeq) }
    }

    /// The items that an author's profile shows in a feed.
    pub(super) fn profile(&self, author: UserNo, feed: FeedId) -> Vec<DisplayKey> {
        let of_feed = self.items.iter().filter(|item| (item.author, item.feed) == (author, feed));
        let mut keys: Vec<_> = of_feed.filter(|item| item.living && !item.direct).map(|item| item.key).collect();
        keys.sort_unstable_by_key(|key| Reverse(*key));
        keys
    }

    pub(super) fn blocks(&self, reader: UserNo, author: UserNo) -> bool {
        self.held.get(&(reader, author)).is_some_and(|held| held.shields.blocks())
    }

    /// Whether a user may see an item as the original of a repost.
    pub(super) fn shows_original(&self, user: UserNo, item: &Published) -> bool {
        let (edge, author) = ((user, item.author), item.author);
        let terms = Terms {
            follows: self.edge(user, author).on,
            shields: self.held.get(&edge).map_or_else(Shields::default, |held| held.shields),
            private: self.privates.contains(&author),
        };
        let reach = match &item.audience {
            Some(readers) => Reach::Narrowed(readers.contains(&user)),
            None if item.direct => Reach::Named(item.readers.contains(&user)),
            None => Reach::Followers,
        };
        item.living && shows_original(user == author, terms, reach)
    }

    /// The living reposts of an item, the greatest id first.
    pub(super) fn reposts(&self, original: ItemId) -> Vec<ItemId> {
        let all = self.items.iter().filter(|item| item.living && item.repost_of == Some(original));
        let mut ids: Vec<_> = all.map(|item| item.key.item).collect();
        ids.sort_unstable_by_key(|id| Reverse(*id));
        ids
    }

    /// The users who have asked to follow an author, newest request first.
    pub(super) fn requests(&self, author: UserNo) -> Vec<(UserNo, Millis)> {
        let asked = self.held.iter().filter(|((_, whom), held)| *whom == author && held.asked);
        let mut list: Vec<_> = asked.map(|((who, _), held)| (*who, held.since)).collect();
        list.sort_unstable_by_key(|(_, since)| Reverse(*since));
        list
    }

    /// The users whom a user follows, or who follow the user, newest follow first; never the user.
    pub(super) fn follows(&self, user: UserNo, following: bool) -> Vec<(UserNo, Millis)> {
        let follows = self.held.iter().filter(|((who, whom), held)| held.follows && who != whom);
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
