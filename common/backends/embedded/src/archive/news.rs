//! Reads the news that no push brings: records of route pull, and records that are addressed to the reader by name.
//!
//! ```text
//!   authors with pull records beyond `after`  ┐ the smaller
//!   edges of the reader                       ┘ side drives ──▶ their records, by number ──▶ cut at `limit`
//! ```
//!
//! For a reader of a thousand followees this costs as many point reads as there are authors with something new. For a
//! reader of few followees it costs about as many point reads as there are followees, however many records other
//! authors have, or the followees have in other feeds.
//!
//! A post wakes many readers who all have read up to right before the post. So the [`FEW`] records after a number are
//! read once and kept in memory, and each reader costs only the reads of its own edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use feedgate_common::archive::{Edge, News, PullHead};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::rules::is_news;
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

/// How many records of each kind are few enough to be read on the calling thread.
const FEW: u64 = 16;

/// How many short runs of pull records are kept in memory.
const KEPT: usize = 64;

/// Where all records of route pull end, and where those addressed to one reader end.
pub(super) struct Ends {
    counters: CountersRow,
    direct: DirectHeadRow,
}

impl Ends {
    pub(super) fn of(view: &View, reader: UserNo) -> Result<Self> {
        let counters = view.get::<Counters>(&())?.unwrap_or_default();
        Ok(Self { counters, direct: view.get::<DirectHeads>(&reader)?.unwrap_or_default() })
    }

    /// Whether so few records lie beyond `after` that they are read quickly.
    pub(super) fn are_near(&self, after: Watermarks) -> bool {
        self.is_near(after.pull) && self.direct.head.saturating_sub(after.direct) <= FEW
    }

    fn is_near(&self, pull: PullSeq) -> bool {
        self.counters.pull.saturating_sub(pull) <= FEW
    }
}

/// The news for the inbox `key`: records beyond `after` of both kinds, up to `ends`, at most `limit`.
pub(super) fn news(
    view: &View,
    runs: &Runs,
    key: InboxKey,
    after: Watermarks,
    limit: usize,
    ends: &Ends,
) -> Result<News> {
    let Ends { counters, direct } = ends;
    let mut entries = vec![];
    let cut = match after.pull {
        pull if pull >= counters.pull => None,
        pull if ends.is_near(pull) => runs.pulled(view, key, pull, limit, counters.pull, &mut entries)?,
        pull => pulled(view, key, pull, limit, &mut entries)?,
    };
    let pull = cut.unwrap_or(counters.pull);
    let upto = Watermarks { pull, direct: addressed(view, key, (after.direct, direct.head), limit, &mut entries)? };
    Ok(News { entries, upto, counter: counters.generation, quiet: direct.quiet, noted: None })
}

/// Short runs of the pull records of one feed, by the numbers between which they lie. Numbers are given in the order of
/// commits and records do not change, so a run is the same in every view that shows its end.
pub(super) struct Runs(Cache<(FeedId, PullSeq, PullSeq), Run>);

/// Pull records of all authors to one feed, by number.
type Run = Arc<[(PullSeq, UserNo, PullRow)]>;

impl Default for Runs {
    fn default() -> Self {
        Self(Cache::new(KEPT))
    }
}

impl Runs {
    /// Does what the function `pulled` does, from a run of records in memory. `head`, where the records end, must be
    /// near.
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
        let records = self.0.get_or_insert_with(&which, || run(view, key.feed, after))?;
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
            let record = record(key.feed, row);
            if is_news(&record, number, edge, after) {
                if entries.len() >= limit {
                    return Ok(Some(number - 1));
                }
                entries.push(Entry::of(&record, author, edge.generation));
            }
        }
        Ok(None)
    }
}

/// The pull records of one feed beyond `after`, by number.
fn run(view: &View, feed: FeedId, after: PullSeq) -> Result<Run> {
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

fn record(feed: FeedId, PullRow { op, seq, key }: PullRow) -> Record {
    Record { seq, op, route: Route::Pull, feed, key }
}

/// Appends the records that the inbox pulls beyond `after`. If `limit` cuts the records, answers the number up to which
/// they are complete.
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
        let mut stream = Stream { edge, after, rows };
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

/// The pull records of one author and feed that the reader's edge lets through.
struct Stream {
    edge: Edge,
    after: PullSeq,
    rows: Rows<Pulls>,
}

impl Stream {
    fn next(&mut self) -> Result<Option<(PullSeq, Entry)>> {
        for row in self.rows.by_ref() {
            let ((AuthorFeed { feed, author }, number), row) = row?;
            let record = record(feed, row);
            if is_news(&record, number, self.edge, self.after) {
                return Ok(Some((number, Entry::of(&record, author, self.edge.generation))));
            }
        }
        Ok(None)
    }
}

/// The authors with pull records beyond `after` whom the reader follows. Authors with news and edges are read in turns
/// until one of the two ends; its rows are then looked up in the other.
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
                let edges = people::with_everyones(view, reader, held)?.into_iter();
                return beyond(view, after, edges.map(|(author, row)| (author, row.held.edge())).collect());
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

/// Appends what is addressed to the reader in this feed beyond `after` and up to `head`, as far as there is room.
/// Answers the number up to which that is complete.
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
                return Ok(upto);
            }
            entries.push(Entry::direct(row.op, row.author, row.key));
        }
        upto = number;
    }
    // An erasure of the reader may have removed the last records, so the end is `head`.
    Ok(head)
}
