//! What no push brings: records of route pull by their numbers, and what is addressed to the reader.
//!
//! ```text
//!   authors with pull records beyond `after`  ┐ the smaller
//!   edges of the reader                       ┘ side drives ──▶ their records, by number ──▶ cut at `limit`
//! ```
//!
//! A reader of a thousand followees costs as many point reads as there are authors with something new, and a reader of
//! few followees as many as these, however much the others have said, or these in other feeds.
//!
//! A post wakes many readers who all stand right before it: the [`FEW`] records after a number are read once and kept, and
//! each of them costs its own edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use feedgate_common::archive::{Edge, News, PullHead};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::{DirectSeq, Entry, FeedId, InboxKey, PullSeq, Record, UserNo, Watermarks};
use quick_cache::sync::Cache;

use super::people;
use super::tables::{
    AuthorFeed, Authors, Counters, CountersRow, DirectHeadRow, DirectHeads, Directs, Edges, PullHeads, PullRow, Pulls,
    ToldHeads,
};
use crate::view::{Read, Rows, View};

pub(super) fn pull_head(view: &View) -> Result<PullSeq> {
    Ok(view.get::<Counters>(&())?.unwrap_or_default().pull)
}

pub(super) fn pull_heads(view: &View, after: PullSeq, limit: usize) -> Result<Vec<PullHead>> {
    let heads = view.scan::<ToldHeads>((Excluded(after), Unbounded)).take(limit);
    heads.map(|row| row.map(|(pull_seq, author)| PullHead { pull_seq, author })).collect()
}

/// So many records, of each kind, are read on the thread that asks.
const FEW: u64 = 16;

/// Stretches of pull records that are kept.
const KEPT: usize = 64;

/// How far everything goes for one reader.
pub(super) struct Ends {
    counters: CountersRow,
    direct: DirectHeadRow,
}

impl Ends {
    pub(super) fn of(view: &View, reader: UserNo) -> Result<Self> {
        let counters = view.get::<Counters>(&())?.unwrap_or_default();
        Ok(Self { counters, direct: view.get::<DirectHeads>(&reader)?.unwrap_or_default() })
    }

    /// Whether what lies beyond `after` is soon read.
    pub(super) fn are_near(&self, after: Watermarks) -> bool {
        self.is_near(after.pull) && self.direct.head.saturating_sub(after.direct) <= FEW
    }

    fn is_near(&self, pull: PullSeq) -> bool {
        self.counters.pull.saturating_sub(pull) <= FEW
    }
}

/// `ends` as the view has them.
pub(super) fn news(
    view: &View,
    stretches: &Stretches,
    key: InboxKey,
    after: Watermarks,
    limit: usize,
    ends: &Ends,
) -> Result<News> {
    let Ends { counters, direct } = ends;
    let mut entries = vec![];
    let cut = match after.pull {
        pull if pull >= counters.pull => None,
        pull if ends.is_near(pull) => stretches.pulled(view, key, pull, limit, counters.pull, &mut entries)?,
        pull => pulled(view, key, pull, limit, &mut entries)?,
    };
    let pull = cut.unwrap_or(counters.pull);
    let upto = Watermarks { pull, direct: addressed(view, key, (after.direct, direct.head), limit, &mut entries)? };
    Ok(News { entries, upto, counter: counters.generation, quiet: direct.quiet })
}

/// Short stretches of pull records of one feed, by where they begin and end. Numbers are given in commit order and
/// records stay as they are, so a stretch is the same in every view that shows its end.
pub(super) struct Stretches(Cache<(FeedId, PullSeq, PullSeq), Stretch>);

/// Everybody's records of one feed, by number.
type Stretch = Arc<[(PullSeq, UserNo, PullRow)]>;

impl Default for Stretches {
    fn default() -> Self {
        Self(Cache::new(KEPT))
    }
}

impl Stretches {
    /// As the function of that name, where `head` is near.
    fn pulled(
        &self,
        view: &View,
        key: InboxKey,
        after: PullSeq,
        limit: usize,
        head: PullSeq,
        entries: &mut Vec<Entry>,
    ) -> Result<Option<PullSeq>> {
        let which = (key.feed, after, head);
        let records = self.0.get_or_insert_with(&which, || stretch(view, key.feed, after))?;
        let mut edges: Vec<(UserNo, Edge)> = vec![];
        for &(number, author, row) in &*records {
            let edge = match edges.iter().find(|(of, _)| *of == author) {
                Some((_, edge)) => *edge,
                None => {
                    let edge = people::edge(view, key.reader, author)?;
                    edges.push((author, edge));
                    edge
                }
            };
            if edge.on && row.seq > edge.from {
                if entries.len() >= limit {
                    return Ok(Some(number - 1));
                }
                entries.push(entry(key.feed, author, edge, row));
            }
        }
        Ok(None)
    }
}

/// What lies beyond `after`.
fn stretch(view: &View, feed: FeedId, after: PullSeq) -> Result<Stretch> {
    let mut records = vec![];
    for head in view.scan::<PullHeads>((Excluded(after), Unbounded)) {
        let list = AuthorFeed { feed, author: head?.1 };
        for row in view.scan::<Pulls>((Excluded((list, after)), Included((list, PullSeq::MAX)))) {
            let ((_, number), row) = row?;
            records.push((number, list.author, row));
        }
    }
    records.sort_unstable_by_key(|(number, ..)| *number);
    Ok(records.into())
}

fn entry(feed: FeedId, author: UserNo, edge: Edge, PullRow { op, seq, key }: PullRow) -> Entry {
    Entry::of(&Record { seq, op, route: Route::Pull, feed, key }, author, edge.generation)
}

/// Appends what the inbox pulls beyond `after`; up to where that is all, if `limit` has cut it.
fn pulled(
    view: &View,
    key: InboxKey,
    after: PullSeq,
    limit: usize,
    entries: &mut Vec<Entry>,
) -> Result<Option<PullSeq>> {
    let mut streams = vec![];
    let mut order = BinaryHeap::new();
    for (author, edge) in with_news(view, key.reader, after)? {
        let list = AuthorFeed { feed: key.feed, author };
        let rows = view.scan::<Pulls>((Excluded((list, after)), Included((list, PullSeq::MAX))));
        let mut stream = Stream { edge, rows };
        if let Some((number, entry)) = stream.next()? {
            order.push(Reverse((number, streams.len())));
            streams.push((stream, entry));
        }
    }
    while let Some(Reverse((number, at))) = order.pop() {
        if entries.len() >= limit {
            return Ok(Some(number - 1));
        }
        let (stream, next) = &mut streams[at];
        entries.push(*next);
        if let Some((number, entry)) = stream.next()? {
            *next = entry;
            order.push(Reverse((number, at)));
        }
    }
    Ok(None)
}

/// An author's records of one feed as the edge lets them through.
struct Stream {
    edge: Edge,
    rows: Rows<Pulls>,
}

impl Stream {
    fn next(&mut self) -> Result<Option<(PullSeq, Entry)>> {
        for row in self.rows.by_ref() {
            let ((AuthorFeed { feed, author }, number), row) = row?;
            if row.seq > self.edge.from {
                return Ok(Some((number, entry(feed, author, self.edge, row))));
            }
        }
        Ok(None)
    }
}

/// Authors with pull records beyond `after` whose edge is in effect. Both sides are read in step until one of them
/// ends; that one is looked up in the other.
fn with_news(view: &View, reader: UserNo, after: PullSeq) -> Result<Vec<(UserNo, Edge)>> {
    let mut heads = view.scan::<PullHeads>((Excluded(after), Unbounded));
    let mut rows = view.scan::<Edges>((reader, UserNo(0))..=(reader, UserNo(u32::MAX)));
    let (mut authors, mut held) = (vec![], vec![]);
    loop {
        match heads.next().transpose()? {
            Some((_, author)) => authors.push(author),
            None => return in_effect(view, reader, authors),
        }
        match rows.next().transpose()? {
            Some(((_, author), row)) => held.push((author, row)),
            None => {
                let edges = people::with_everyones(view, held)?.into_iter();
                return beyond(view, after, edges.map(|(author, row)| (author, row.edge())).collect());
            }
        }
    }
}

fn in_effect(view: &View, reader: UserNo, authors: Vec<UserNo>) -> Result<Vec<(UserNo, Edge)>> {
    let edges = authors.into_iter().map(|author| Ok((author, people::edge(view, reader, author)?)));
    edges.filter(|edge| edge.as_ref().map_or(true, |(_, edge)| edge.on)).collect()
}

fn beyond(view: &View, after: PullSeq, mut edges: Vec<(UserNo, Edge)>) -> Result<Vec<(UserNo, Edge)>> {
    let mut error = None;
    edges.retain(|(author, _)| match view.get::<Authors>(author) {
        Ok(row) => row.unwrap_or_default().last_pull > after,
        Err(failed) => error.replace(failed).is_none(),
    });
    error.map_or(Ok(edges), Err)
}

/// Appends what is addressed to the reader in this feed beyond `after`, up to `head`, as far as there is room; up to where
/// that is all.
fn addressed(
    view: &View,
    InboxKey { reader, feed }: InboxKey,
    (after, head): (DirectSeq, DirectSeq),
    limit: usize,
    entries: &mut Vec<Entry>,
) -> Result<DirectSeq> {
    let mut upto = after.min(head);
    for row in view.scan::<Directs>((Excluded((reader, upto)), Included((reader, head)))) {
        let ((_, number), row) = row?;
        if row.feed == feed {
            if entries.len() >= limit {
                break;
            }
            entries.push(Entry::direct(row.op, row.author, row.key));
        }
        upto = number;
    }
    Ok(upto)
}
