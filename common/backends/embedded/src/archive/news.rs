//! What no push brings: records of route pull by their numbers, and what is addressed to the reader.
//!
//! ```text
//!   authors with pull records beyond `after`  ┐ the smaller
//!   edges of the reader                       ┘ side drives ──▶ their records, by number ──▶ cut at `limit`
//! ```
//!
//! A reader of a thousand followees costs as many point reads as there are authors with something new, and a reader of
//! few followees as many as these, however much the others have said, or these in other feeds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use feedgate_common::archive::{Edge, News, PullHead};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::{DirectSeq, Entry, InboxKey, PullSeq, Record, UserNo, Watermarks};

use super::people;
use super::tables::{
    AuthorFeed, Authors, Counters, DirectHeadRow, DirectHeads, Directs, Edges, PullHeads, PullRow, Pulls, ToldHeads,
};
use crate::view::{Read, Rows, View};

pub(super) fn pull_head(view: &View) -> Result<PullSeq> {
    Ok(view.get::<Counters>(&())?.unwrap_or_default().pull)
}

pub(super) fn pull_heads(view: &View, after: PullSeq, limit: usize) -> Result<Vec<PullHead>> {
    let heads = view.scan::<ToldHeads>((Excluded(after), Unbounded)).take(limit);
    heads.map(|row| row.map(|(pull_seq, author)| PullHead { pull_seq, author })).collect()
}

/// The answer if there is nothing: it costs three point reads.
pub(super) fn none(view: &View, reader: UserNo, after: Watermarks) -> Result<Option<News>> {
    let counters = view.get::<Counters>(&())?.unwrap_or_default();
    let direct = view.get::<DirectHeads>(&reader)?.unwrap_or_default();
    let upto = Watermarks { pull: counters.pull, direct: direct.head };
    let nothing = after.pull >= upto.pull && after.direct >= upto.direct;
    Ok(nothing.then_some(News { entries: vec![], upto, counter: counters.generation, quiet: direct.quiet }))
}

pub(super) fn news(view: &View, key: InboxKey, after: Watermarks, limit: usize) -> Result<News> {
    let counters = view.get::<Counters>(&())?.unwrap_or_default();
    let mut entries = vec![];
    let pull = match after.pull >= counters.pull {
        true => counters.pull,
        false => pulled(view, key, after.pull, limit, &mut entries)?.unwrap_or(counters.pull),
    };
    let DirectHeadRow { head, quiet, .. } = view.get::<DirectHeads>(&key.reader)?.unwrap_or_default();
    let direct = addressed(view, key, (after.direct, head), limit, &mut entries)?;
    Ok(News { entries, upto: Watermarks { pull, direct }, counter: counters.generation, quiet })
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
            let ((AuthorFeed { feed, author }, number), PullRow { op, seq, key }) = row?;
            if seq > self.edge.from {
                let record = Record { seq, op, route: Route::Pull, feed, key };
                return Ok(Some((number, Entry::of(&record, author, self.edge.generation))));
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

/// Appends what is addressed to the reader in this feed beyond `after`, up to `head`, as far as there is room; up to where that is all.
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
