//! What the Archive holds, and what is read of it: each function here is one snapshot of the Archive.
//!
//! [`feedgate_common::rules`] decides which reader sees which record, and [`feedgate_common::graph`] what a row of an
//! edge means.
//!
//! Three more places compute what a feed holds; CONTRIBUTING.md lists them. `Truth::wanted` is independent on purpose:
//! it is computed in every state of the model, from the few numbers of that state. It takes the product's rules, since
//! the model is about the order of steps; whether the rules are right is what the oracle of `tests/src/oracle` checks.

use feedgate_common::archive::{Edge, FeedAdd};
use feedgate_common::change::{Entry, Op, Record, route_of};
use feedgate_common::graph::{Shields, effective_edge};
use feedgate_common::rules::{is_for, is_news, shown};
use feedgate_common::{FeedId, OutboxSeq, PullSeq, UserNo};

use crate::Fanout;
use crate::state::{
    ADDRESSED_MAX, AUTHORS, Author, Item, OUTBOX_MAX, Posted, Seen, Taken, ToReader, Truth, View, addressed_item,
    author_no,
};
use crate::variants::Variant;

impl Truth {
    /// The last sequence number that `author` has given.
    pub(crate) fn head(&self, author: usize) -> u8 {
        self.authors[author].outbox.len() as u8
    }

    /// The outbox up to `head`.
    pub(crate) fn records(&self, model: &Fanout, author: usize, head: u8) -> Vec<Record> {
        let Author { outbox, class, .. } = &self.authors[author];
        let route = |posted: &Posted| match model.variant {
            Some(Variant::CurrentClass) => route_of(*class, 0, 0),
            _ => posted.route,
        };
        let record = |(posted, seq): (&Posted, u64)| Record {
            seq,
            op: posted.op,
            route: route(posted),
            feed: FeedId(posted.feed.into()),
            key: model.bounds.key(posted.item, posted.moved),
        };
        outbox[..usize::from(head)].iter().zip(1..).map(record).collect()
    }

    /// The records of one feed alone, up to `head`. A delete is in the feed of its add.
    pub(crate) fn records_of(&self, model: &Fanout, author: usize, feed: FeedId, head: u8) -> Vec<Record> {
        let mut records = self.records(model, author, head);
        records.retain(|record| record.feed == feed);
        records
    }

    /// The pull number of a record; 0 if its route is push.
    pub(crate) fn pull_seq_of(&self, author: usize, record: &Record) -> PullSeq {
        self.authors[author].outbox[record.seq as usize - 1].pull_seq.into()
    }

    /// Whether a record of the author is for the reader at all: the reader is in its audience, if it has one.
    /// `own` says whether the reader is the author.
    pub(crate) fn is_for(&self, (reader, author): (usize, usize), own: bool, record: &Record) -> bool {
        let to = self.authors[author].outbox[record.seq as usize - 1].to;
        is_for(record.route, own, || Ok::<_, std::convert::Infallible>(to >> reader & 1 == 1)).unwrap_or(false)
    }

    /// The adds among `outbox` that the reader sees under this edge, as [`shown`] says, and that are for the reader.
    pub(crate) fn shown(
        &self,
        model: &Fanout,
        (reader, author): (usize, usize),
        outbox: &[Record],
        edge: (Edge, OutboxSeq),
        reached: impl Fn(&Record) -> bool,
    ) -> Vec<Record> {
        let mut shown = shown(outbox, edge, model.bounds.backfill, reached);
        shown.retain(|add| self.is_for((reader, author), model.is_own(reader, author), add));
        shown
    }

    /// The adds that a follow step or a rebuild brings: those that are [shown](Self::shown).
    pub(crate) fn to_bring(
        &self,
        model: &Fanout,
        of: (usize, usize),
        outbox: &[Record],
        edge: (Edge, OutboxSeq),
        reached: impl Fn(&Record) -> bool,
    ) -> Vec<Record> {
        let mut adds = self.shown(model, of, outbox, edge, reached);
        if model.variant == Some(Variant::AnyDeleteEndsAnAdd) {
            let is_deleted = |item| outbox.iter().any(|other| other.op == Op::Delete && other.key.item == item);
            adds.retain(|add| !is_deleted(add.key.item));
        }
        adds
    }

    /// The edge as fan-out sees it.
    pub(crate) fn edge(&self, reader: usize, author: usize) -> Edge {
        let row = self.readers[reader].rows[author];
        let held = row.held.then(|| (row.follows, Shields(row.shields), row.generation.into(), row.from.into()));
        effective_edge(held, self.authors[author].everyone_since.map(u64::from))
    }

    /// The edge as fan-out sees it, and from where on the follow door brings everything.
    pub(crate) fn seen(&self, reader: usize, author: usize) -> Seen {
        let Edge { on, generation, from } = self.edge(reader, author);
        let since = self.since(reader, author) as u8;
        Seen { on, generation: generation as u8, from: from as u8, since }
    }

    /// The edges of a reader to every author.
    pub(crate) fn edges(&self, reader: usize) -> [Seen; AUTHORS] {
        std::array::from_fn(|author| self.seen(reader, author))
    }

    /// The store's pull number, and the direct number of `reader`.
    pub(crate) fn counters(&self, reader: usize) -> Taken {
        Taken { pull: self.pull_seq, direct: self.readers[reader].direct.len() as u8 }
    }

    /// What the inbox, under these edges, has not taken in beyond `after`, up to `upto`: what is pulled in the order of
    /// its numbers, then what is addressed. Each with its number.
    pub(crate) fn news(
        &self,
        model: &Fanout,
        log: usize,
        edges: [Seen; AUTHORS],
        after: Taken,
        upto: Taken,
    ) -> [Vec<(u8, Entry)>; 2] {
        let (mut pulled, feed, reader) = (vec![], model.feed_of(log), model.reader_of(log));
        for (author, edge) in edges.into_iter().enumerate().map(|(author, seen)| (author, Edge::from(seen))) {
            for record in self.records_of(model, author, feed, self.head(author)) {
                let pull_seq = self.pull_seq_of(author, &record);
                if is_news(&record, pull_seq, edge, after.pull.into()) && pull_seq <= upto.pull.into() {
                    pulled.push((pull_seq as u8, Entry::of(&record, author_no(author), edge.generation)));
                }
            }
        }
        pulled.sort_unstable_by_key(|(pull_seq, _)| *pull_seq);
        let direct = self.readers[reader].direct.iter().zip(1..);
        let direct = direct.filter(|(_, n)| (after.direct + 1..=upto.direct).contains(n));
        let direct = direct.filter(|(to, _)| self.feed(to.item) == feed);
        let direct =
            direct.map(|(to, n)| (n, Entry::direct(to.op, self.sender(to.item), model.bounds.key(to.item, to.moved))));
        [pulled, direct.collect()]
    }

    /// The adds among the first `upto` records addressed to the reader in this feed that none of them deletes.
    pub(crate) fn direct_adds(&self, model: &Fanout, log: usize, upto: u8) -> Vec<FeedAdd> {
        let records = &self.readers[model.reader_of(log)].direct[..usize::from(upto)];
        let deletes = |from: usize, item| records[from..].iter().any(|to| to.op == Op::Delete && to.item == item);
        let later = |at: usize| if model.variant == Some(Variant::AnyDeleteEndsAnAdd) { 0 } else { at };
        let adds = records.iter().enumerate().filter(|(at, to)| to.op == Op::Add && !deletes(later(*at), to.item));
        let adds = adds.map(|(_, to)| to).filter(|to| self.feed(to.item) == model.feed_of(log));
        let add = |to: &ToReader| {
            let key = model.bounds.key(to.item, to.moved);
            FeedAdd { author: self.sender(to.item), outbox_seq: 0, generation: 0, key }
        };
        adds.map(add).collect()
    }

    fn sender(&self, item: Item) -> UserNo {
        author_no(self.addressed[usize::from(item - addressed_item(0))].author.into())
    }

    /// The feed to which an item belongs.
    pub(crate) fn feed(&self, item: Item) -> FeedId {
        if item >= addressed_item(0) {
            return FeedId(self.addressed[usize::from(item - addressed_item(0))].feed.into());
        }
        let posted = self.authors[usize::from(item > OUTBOX_MAX)].outbox.iter().find(|posted| posted.item == item);
        FeedId(posted.map_or(0, |posted| posted.feed).into())
    }

    /// The version of an item that lives; 0 if it does not.
    pub(crate) fn version(&self, item: Item) -> u8 {
        if item >= addressed_item(0) {
            return self.addressed.get(usize::from(item - addressed_item(0))).map_or(0, |addressed| addressed.version);
        }
        let outbox = &self.authors[usize::from(item > OUTBOX_MAX)].outbox;
        let last = outbox.iter().rposition(|posted| posted.item == item);
        last.map_or(0, |at| if matches!(outbox[at].op, Op::Delete | Op::Forget) { 0 } else { at as u8 + 1 })
    }

    /// Whether the newest place of an item is the one to which it has moved.
    pub(crate) fn moved(&self, item: Item) -> bool {
        if item >= addressed_item(0) {
            return self.addressed[usize::from(item - addressed_item(0))].moved;
        }
        let outbox = &self.authors[usize::from(item > OUTBOX_MAX)].outbox;
        outbox.iter().rfind(|posted| posted.item == item).is_some_and(|posted| posted.moved)
    }

    /// The number of the newest add of an item of an outbox, and what it says; `None` of what is addressed to readers.
    pub(crate) fn newest_add(&self, item: Item) -> Option<(u8, Posted)> {
        let outbox = &self.authors[usize::from(item > OUTBOX_MAX)].outbox;
        let of_item = |posted: &Posted| posted.op == Op::Add && posted.item == item;
        let at = outbox.iter().rposition(of_item)?;
        Some((at as u8 + 1, outbox[at]))
    }

    /// What the reader of the inbox is to see in its feed once everything has come to rest.
    pub(crate) fn wanted(&self, model: &Fanout, log: usize) -> View {
        let (mut view, reader, feed) = (View::default(), model.reader_of(log), model.feed_of(log));
        for author in 0..model.bounds.authors {
            let outbox = self.records_of(model, author, feed, self.head(author));
            let edge = Edge { from: self.since(reader, author), ..self.edge(reader, author) };
            for add in self.shown(model, (reader, author), &outbox, (edge, edge.from), |_| true) {
                let item = add.key.item.0 as Item;
                view.set(item, self.version(item), self.moved(item));
            }
        }
        for n in 0..usize::from(ADDRESSED_MAX).min(self.addressed.len()) {
            if self.addressed[n].to >> reader & 1 == 1 && self.feed(addressed_item(n)) == feed {
                view.set(addressed_item(n), self.addressed[n].version, self.addressed[n].moved);
            }
        }
        view
    }

    /// From where on everything is wanted, whatever the edge's `from` is.
    fn since(&self, reader: usize, author: usize) -> u64 {
        let row = self.readers[reader].rows[author];
        if row.held { row.since.into() } else { self.edge(reader, author).from }
    }
}
